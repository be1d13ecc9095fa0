# SPDX-License-Identifier: GPL-2.0
#
# For people; the list of the module's objects is in Kbuild.
#
#   KVER=	kernel to build for: a full release, the start of one (6.1, 6.12:
#		the newest headers of that series), or "debug"; by default the
#		running kernel where its headers are installed, else 6.12
#   KDIR=	the kernel's build directory, where it is in no usual place
#   DEBUG=1	the same as KVER=debug
#   T=		the one test to run
#   DESTDIR=, PREFIX=	where to install
#   RISO_CACHE=	where kernels and tools that are no packages are kept
#   RISO_KVM=1	let the virtual machines of "check" use KVM

RISO_CACHE ?= /var/cache/rdma_isolate
PREFIX ?= /usr/local
export RISO_CACHE RISO_KVM

BUILD := $(CURDIR)/build
KSRC := $(RISO_CACHE)/ksrc
# What has a Makefile of its own.
PARTS := $(patsubst %/Makefile,%,$(wildcard tools/*/Makefile)) userspace/shim userspace/agent
CHECK_KVER := 6.12 6.1

ifneq ($(DEBUG),)
override KVER := debug
endif
ifneq ($(KVER),)
CHECK_KVER := $(KVER)
endif
KVER ?= $(if $(wildcard /lib/modules/$(shell uname -r)/build/Makefile),$(shell uname -r),6.12)

# Asked for only where needed: "make check" on a bare machine comes here
# before there are any headers.
ifneq ($(KDIR),)
KREL = $(shell cat "$(KDIR)/include/config/kernel.release")
else
KREL = $(shell tools/kernel.sh rel $(KVER))
KDIR = $(shell tools/kernel.sh dir $(KVER))
endif
# One directory for each kernel, so that builds for two do not mix.
KBUILD_OUT = $(BUILD)/$(KREL)
SELFTESTS_OUT = $(KBUILD_OUT)/selftests/rdma_isolate
KMAKE = $(MAKE) -j$(shell nproc) -C $(KDIR) M=$(KBUILD_OUT)

all: module parts

# Links to the sources, and to nothing that is no longer there.
links:
	@test -n "$(KREL)" -a -n "$(KDIR)"
	@mkdir -p $(KBUILD_OUT)
	@find $(KBUILD_OUT) -xtype l -delete
	@cp -rsfT $(CURDIR)/kmod $(KBUILD_OUT)/kmod
	@cp -rsfT $(CURDIR)/uapi $(KBUILD_OUT)/uapi
	@ln -sf $(CURDIR)/Kbuild $(KBUILD_OUT)/Kbuild

module: links
	$(KMAKE) modules

parts: $(PARTS)

$(PARTS):
	$(MAKE) -C $@

# The tests as they lie in a kernel tree: beside lib.mk and kselftest/.
selftests: module parts
	@mkdir -p $(SELFTESTS_OUT)
	@find $(SELFTESTS_OUT) -xtype l -delete
	@cp -rsfT $(CURDIR)/selftests $(SELFTESTS_OUT)
	@ln -sfn $(KSRC)/tools/testing/selftests/kselftest $(KBUILD_OUT)/selftests/kselftest
	$(MAKE) -C $(SELFTESTS_OUT) KSFT_DIR=$(KSRC)/tools/testing/selftests \
		KDIR=$(KDIR) OUTPUT=$(SELFTESTS_OUT) all

setup-%:
	@tools/setup-debian.sh $*

check: check-unit $(if $(filter debug,$(CHECK_KVER)),setup-debug,setup-vm)
	@for k in $(CHECK_KVER); do $(MAKE) -s KVER=$$k selftests || exit; done
	@selftests/vm/run.sh $(CHECK_KVER:%=-k %) $(if $(T),-t '$(T)')

# As long as it takes to be sure, hours.
check-full: export RISO_ROUNDS ?= 50
check-full: export RISO_REQUESTS ?= 100000
check-full: export RISO_CASES ?= all
check-full: export RISO_TIMEOUT ?= 7200
check-full: export RISO_LIMIT ?= 36000
check-full: export RISO_EVERYWHERE = 1
check-full: check

check-unit: setup-build
	@for d in $(PARTS) userspace/tests; do \
		grep -q '^check:' $$d/Makefile || continue; \
		$(MAKE) -C $$d check || exit; \
	done

bench: setup-vm
	@$(MAKE) -s KVER=$(firstword $(CHECK_KVER)) selftests
	@selftests/bench/run.sh -k $(firstword $(CHECK_KVER))

demo: setup-vm
	@$(MAKE) -s KVER=$(firstword $(CHECK_KVER)) selftests
	@selftests/bench/run.sh -k $(firstword $(CHECK_KVER)) -p demo

vm-shell: setup-vm
	@$(MAKE) -s selftests
	@selftests/vm/boot.sh -k $(KVER)

# With BASE= (a commit), what changed since; without, every file. Versions have
# to be compared out of tree, and changing an ib_device_ops is what the module
# is for. The two checks that trace.h is spared are at odds with how TRACE_EVENT
# is written; those that tools are spared ask for what only the kernel has.
CHECKPATCH = $(KSRC)/scripts/checkpatch.pl --root=$(CURDIR) --no-tree --strict \
	--quiet --no-summary
STYLE_IGNORE := FILE_PATH_CHANGES,LINUX_VERSION_CODE,CONSTANT_COMPARISON,CONST_STRUCT
STYLE_TRACE := $(STYLE_IGNORE),OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT
STYLE_USER := $(STYLE_IGNORE),PREFER_KERNEL_TYPES,PREFER_DEFINED_ATTRIBUTE_MACRO,CAMELCASE,VOLATILE,EMBEDDED_FUNCTION_NAME,USE_NEGATIVE_ERRNO,EMBEDDED_FILENAME

style: setup-style
ifneq ($(BASE),)
	@$(CHECKPATCH) --ignore $(STYLE_IGNORE) -g $(BASE)..HEAD
else
	@files() { git ls-files -- "$$@" | grep -v _gen; }; \
	status=0; \
	$(CHECKPATCH) --ignore $(STYLE_IGNORE) -f $$(files uapi 'selftests/*.[ch]' \
		'kmod/*.[ch]' ':!kmod/trace.h') || status=1; \
	$(CHECKPATCH) --ignore $(STYLE_TRACE) -f kmod/trace.h || status=1; \
	$(CHECKPATCH) --ignore $(STYLE_USER) -f $$(files 'tools/*.[ch]' \
		'userspace/*.[ch]') || status=1; \
	exit $$status
endif

sparse: setup-style links
	$(KMAKE) C=2 CF="-D__CHECK_ENDIAN__" modules

install: all
	$(KMAKE) INSTALL_MOD_PATH=$(DESTDIR) INSTALL_MOD_DIR=updates modules_install
	depmod -b $(if $(DESTDIR),$(DESTDIR),/) $(KREL)
	for d in $(PARTS); do \
		$(MAKE) -C $$d DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) install || exit; \
	done

clean:
	rm -rf $(BUILD)
	for d in $(PARTS) userspace/tests; do $(MAKE) -C $$d clean || exit; done

.PHONY: all links module parts $(PARTS) selftests check check-full check-unit \
	bench demo vm-shell style sparse install clean
