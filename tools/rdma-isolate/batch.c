// SPDX-License-Identifier: GPL-2.0
/*
 * Reads commands from a file and runs them, all or none: nothing runs before every
 * line was understood, and when the kernel refuses one, what was changed before it is
 * changed back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch.h"
#include "config_apply.h"
#include "config_item.h"
#include "config_read.h"
#include "error.h"

const char *words_split(char *line, struct words *words)
{
	char *in = line, *to;
	bool quoted;

	words->n = 0;
	for (;;) {
		in += strspn(in, " \t\r\n");
		if (!*in || *in == '#')
			break;
		if (words->n == WORDS_MAX)
			return "too many words";
		to = in;
		words->word[words->n++] = to;
		for (quoted = false; *in && (quoted || !strchr(" \t\r\n", *in));
		     in++) {
			if (*in == '"') {
				quoted = !quoted;
				continue;
			}
			if (quoted && *in == '\\' && in[1])
				*to++ = *++in == 'n' ? '\n' : *in;
			else
				*to++ = *in;
		}
		if (quoted)
			return "a \" is missing";
		if (*in)
			in++;
		*to = 0;
	}
	words->word[words->n] = NULL;
	return NULL;
}

static int add_line(struct batch *batch, unsigned int number, const char *text)
{
	struct batch_line *line;
	int status = CMD_DONE;
	struct words words;
	const char *wrong;
	void *more;

	more = realloc(batch->lines, (batch->n + 1) * sizeof(*line));
	if (!more)
		return CMD_REFUSED;
	batch->lines = more;
	line = &batch->lines[batch->n];
	line->number = number;
	line->text = strdup(text);
	if (!line->text)
		return CMD_REFUSED;
	batch->n++;
	wrong = words_split(line->text, &words);
	if (wrong)
		return usage_error("%s", wrong);
	if (words.n) {
		status = cmd_parse(words.n, words.word, &line->cmd);
		if (status == CMD_DONE && (line->cmd.object->stream ||
					   line->cmd.object->fleeting))
			status = cmd_refuse_in_file(line->cmd.object->name);
		return status;
	}
	free(line->text);
	batch->n--;
	return status;
}

int batch_read(const char *name, struct batch *batch)
{
	FILE *file = strcmp(name, "-") ? fopen(name, "r") : stdin;
	unsigned int number = 0;
	int status = CMD_DONE;
	char *text = NULL;
	size_t size = 0;

	*batch = (struct batch) { .name = name };
	if (!file) {
		error("%s: %s", name, strerror(errno));
		return CMD_REFUSED;
	}
	while (status == CMD_DONE && getline(&text, &size, file) >= 0) {
		error_from(name, ++number);
		status = add_line(batch, number, text);
	}
	error_from(NULL, 0);
	if (status == CMD_REFUSED)
		error("%s", strerror(ENOMEM));
	if (status == CMD_DONE && ferror(file)) {
		error("%s: %s", name, strerror(errno));
		status = CMD_REFUSED;
	}
	free(text);
	if (file != stdin)
		fclose(file);
	if (status != CMD_DONE)
		batch_free(batch);
	return status;
}

void batch_free(struct batch *batch)
{
	unsigned int i;

	for (i = 0; i < batch->n; i++)
		free(batch->lines[i].text);
	free(batch->lines);
	*batch = (struct batch) { };
}

int batch_run(const char *name, struct printer *out)
{
	struct config before;
	struct batch batch;
	int status, locked;
	unsigned int i;

	status = batch_read(name, &batch);
	if (status != CMD_DONE)
		return status;
	/* Who may not have the lock may only look, or has the capability alone. */
	locked = config_lock();
	status = config_read(&before);
	for (i = 0; i < batch.n && status == CMD_DONE; i++) {
		error_from(name, batch.lines[i].number);
		status = cmd_run(&batch.lines[i].cmd, out);
	}
	error_from(NULL, 0);
	if (i && status != CMD_DONE)
		config_restore(&before);
	if (locked >= 0)
		close(locked);
	config_free(&before);
	batch_free(&batch);
	return status;
}
