// SPDX-License-Identifier: GPL-2.0
/*
 * Writes to all of its memory time and again, and looks each time whether it still holds
 * what was written before.
 *
 *	swap_verify MEGABYTES
 *
 * Says "pass N" when it has been through once more. Ends with status 0 on SIGTERM, after a
 * last look, and with 1 as soon as something differs.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_WORDS (4096 / sizeof(unsigned long))

/* What word number @i holds after a pass: never what a page of zeroes would. */
static unsigned long value(unsigned long pass, unsigned long i)
{
	return pass ? (pass << 40 ^ i * 0x9e3779b97f4a7c15) | 1 : 0;
}

static bool is_to_end(void)
{
	sigset_t pending;

	return !sigpending(&pending) && sigismember(&pending, SIGTERM);
}

static int differs(const unsigned long *mem, unsigned long i, unsigned long pass)
{
	if (mem[i] == value(pass, i))
		return 0;
	printf("word %lu is %lx, not %lx\n", i, mem[i], value(pass, i));
	return 1;
}

int main(int argc, char **argv)
{
	unsigned long words, done, i;
	unsigned long pass = 0;
	unsigned long *mem;
	sigset_t term;

	if (argc != 2) {
		fprintf(stderr, "usage: swap_verify MEGABYTES\n");
		return 2;
	}
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	words = (strtoul(argv[1], NULL, 0) << 20) / sizeof(*mem);
	mem = mmap(NULL, words * sizeof(*mem), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	setlinebuf(stdout);
	do {
		for (done = 0; done < words && !is_to_end(); done += PAGE_WORDS) {
			for (i = done; i < done + PAGE_WORDS; i++) {
				if (differs(mem, i, pass))
					return 1;
				mem[i] = value(pass + 1, i);
			}
		}
		if (done == words)
			printf("pass %lu\n", ++pass);
	} while (done == words);
	for (i = 0; i < words; i++)
		if (differs(mem, i, i < done ? pass + 1 : pass))
			return 1;
	return 0;
}
