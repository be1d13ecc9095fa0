# SPDX-License-Identifier: GPL-2.0
#
# For people; the list of the module's objects is in Kbuild. "make help" shows what
# can be made, and these variables:
#
#   KVER=	kernel to build for: a full release, the start of one (6.1, 6.12:
#		the newest headers of that series), "debug" or "kcsan"; by default the
#		running kernel where its headers are installed, else the kernel
#		of the newest headers
#   KDIR=	the kernel's build directory, where it is in no usual place
#   DEBUG=1	the same as KVER=debug: a kernel with KASAN, lockdep and kmemleak
#   DEBUG=kcsan	the same as KVER=kcsan: a kernel that looks for data races of ours
#   T=		the one test to run
#   BASE=	the commit since which "style" checks what changed
#   DESTDIR=, PREFIX=	where to install
#   DKMS=	the program of install-dkms and uninstall, with its options
#   RISO_CACHE=	where kernels and tools that are no packages are kept
#   RISO_KVM=1	let the virtual machines of "check" use KVM

include version.mk

THIS := $(firstword $(MAKEFILE_LIST))

RISO_CACHE ?= /var/cache/rdma_isolate
PREFIX ?= /usr/local
DKMS ?= dkms
export RISO_CACHE RISO_KVM

BUILD := $(CURDIR)/build
KSRC := $(RISO_CACHE)/ksrc
# What has a Makefile of its own.
PARTS := $(patsubst %/Makefile,%,$(wildcard tools/*/Makefile)) userspace/shim userspace/agent
CHECK_KVER := 6.12 6.1

ifneq ($(DEBUG),)
override KVER := $(if $(filter kcsan,$(DEBUG)),kcsan,debug)
endif
ifneq ($(KVER),)
CHECK_KVER := $(KVER)
endif
RUNNING := $(shell uname -r)
KVER ?= $(if $(wildcard /lib/modules/$(RUNNING)/build/Makefile),$(RUNNING),newest)

# Asked for only where needed, after "headers": "make check" on a bare machine
# comes here before there are any headers.
ifneq ($(KDIR),)
KREL = $(shell cat "$(KDIR)/include/config/kernel.release")
FIND_HEADERS = cat "$(KDIR)/include/config/kernel.release"
else
KREL = $(shell tools/kernel.sh rel $(KVER))
KDIR = $(shell tools/kernel.sh dir $(KVER))
FIND_HEADERS = tools/kernel.sh dir $(KVER)
endif
# One directory for each kernel, so that builds for two do not mix.
KBUILD_OUT = $(BUILD)/$(KREL)
SELFTESTS_OUT = $(KBUILD_OUT)/selftests/rdma_isolate
KMAKE = $(MAKE) -j$(shell nproc) -C $(KDIR) M=$(KBUILD_OUT)

all: module parts ## the module, the tools, the shim and the agent

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(THIS) | \
		while IFS='|' read -r what does; do \
			printf '%-16s%s\n' "$$what" "$$does"; \
		done
	@sed -n '/^#   KVER=/,/^$$/s/^# *//p' $(THIS)

# Tells once what is missing: whatever asks for KREL or KDIR comes later.
headers:
	@$(FIND_HEADERS) >/dev/null
ifeq ($(KVER),newest)
	@echo "no headers of $(RUNNING), which runs: building for $$(tools/kernel.sh rel newest)"
endif

# Links to the sources, and to nothing that is no longer there.
links: headers
	@mkdir -p $(KBUILD_OUT)
	@find $(KBUILD_OUT) -xtype l -delete
	@cp -rsfT $(CURDIR)/kmod $(KBUILD_OUT)/kmod
	@cp -rsfT $(CURDIR)/uapi $(KBUILD_OUT)/uapi
	@ln -sf $(CURDIR)/Kbuild $(CURDIR)/version.mk $(CURDIR)/dkms.conf $(KBUILD_OUT)

module: links ## only the module
	$(KMAKE) modules

parts: $(PARTS) ## only what runs in user space

$(PARTS):
	$(MAKE) -C $@

# The tests as they lie in a kernel tree: beside lib.mk and kselftest/.
selftests: module parts ## what runs in virtual machines, as "make check" builds it
	@mkdir -p $(SELFTESTS_OUT)
	@find $(SELFTESTS_OUT) -xtype l -delete
	@cp -rsfT $(CURDIR)/selftests $(SELFTESTS_OUT)
	@ln -sfn $(KSRC)/tools/testing/selftests/kselftest $(KBUILD_OUT)/selftests/kselftest
	$(MAKE) -C $(SELFTESTS_OUT) KSFT_DIR=$(KSRC)/tools/testing/selftests \
		KDIR=$(KDIR) OUTPUT=$(SELFTESTS_OUT) all

setup-%:
	@tools/setup-debian.sh $*

check: check-unit setup-$(or $(filter debug kcsan,$(CHECK_KVER)),vm) ## every test, in virtual machines; T=NAME one of them
	@for k in $(CHECK_KVER); do $(MAKE) -s KVER=$$k selftests || exit; done
	@selftests/vm/run.sh $(CHECK_KVER:%=-k %) $(if $(T),-t '$(T)')

# As long as it takes to be sure, hours.
check-full: export RISO_ROUNDS ?= 50
check-full: export RISO_ENDS ?= 10000
check-full: export RISO_PRESSURE ?= 200
check-full: export RISO_REQUESTS ?= 100000
check-full: export RISO_CASES ?= all
check-full: export RISO_TIMEOUT ?= 7200
check-full: export RISO_LIMIT ?= 36000
check-full: export RISO_CPUS ?= 4
check-full: export RISO_EVERYWHERE = 1
check-full: setup-kv check ## every test for hours

check-unit: setup-build ## tests that need no virtual machine
	@for d in $(PARTS) userspace/tests; do \
		grep -q '^check:' $$d/Makefile || continue; \
		$(MAKE) -C $$d check || exit; \
	done
	@tools/check-floors.py
	@tools/check-docs.sh
	@tools/check-names.sh
	@tools/check-length.sh
	@tools/check-install.sh

bench: setup-vm ## measure
	@$(MAKE) -s KVER=$(firstword $(CHECK_KVER)) selftests
	@selftests/bench/run.sh -k $(firstword $(CHECK_KVER))

bench-links: setup-vm ## measure on a synthetic adapter of 25 to 400 Gbit/s; about an hour
	@$(MAKE) -s KVER=$(firstword $(CHECK_KVER)) selftests
	@selftests/bench/run.sh -k $(firstword $(CHECK_KVER)) -p links

bench-shim: setup-build ## measure what the verbs shim costs, on one pinned processor; two minutes
	@$(MAKE) -s -C userspace/tests/cost run

demo: setup-vm ## show what it does, in a virtual machine
	@$(MAKE) -s KVER=$(firstword $(CHECK_KVER)) selftests
	@selftests/bench/run.sh -k $(firstword $(CHECK_KVER)) -p demo

demo-kv: setup-kv ## show it with the transfers of a key-value cache, by Mooncake; 15 minutes
	@$(MAKE) -s KVER=$(firstword $(CHECK_KVER)) selftests
	@selftests/bench/run.sh -k $(firstword $(CHECK_KVER)) -p kv

vm-shell: setup-vm ## look inside a virtual machine
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
# The linker wraps functions for tests, which no header declares.
STYLE_USER := $(STYLE_IGNORE),AVOID_EXTERNS,PREFER_KERNEL_TYPES,PREFER_DEFINED_ATTRIBUTE_MACRO,CAMELCASE,VOLATILE,EMBEDDED_FUNCTION_NAME,USE_NEGATIVE_ERRNO,EMBEDDED_FILENAME

style: setup-style ## checkpatch and shellcheck; BASE=COMMIT checkpatch of what changed since
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
	shellcheck -x -P SCRIPTDIR -S warning $$(files '*.sh' '*.inc') .ci/run || status=1; \
	exit $$status
endif

sparse: setup-style links ## sparse
	$(KMAKE) C=2 CF="-D__CHECK_ENDIAN__" modules

# The kernel's own rules sign the module where there is a key, and else complain that
# there is none; they run depmod where there is a System.map, and else complain.
SIGN = $(if $(wildcard $(KDIR)/certs/signing_key.pem),,CONFIG_MODULE_SIG_ALL=)
UPDATES = $(DESTDIR)/lib/modules/$(KREL)/updates

install: all ## all of it, for one kernel
	@! ls $(UPDATES)/dkms/rdma_isolate.ko* >/dev/null 2>&1 || { \
		echo "dkms has the module for $(KREL): make install-dkms, or make uninstall first" >&2; \
		exit 1; }
	$(RM) $(UPDATES)/rdma_isolate.ko*
	$(KMAKE) INSTALL_MOD_PATH=$(DESTDIR) INSTALL_MOD_DIR=updates INSTALL_MOD_STRIP=1 \
		$(SIGN) cmd_depmod= modules_install
	$(if $(DESTDIR),,depmod $(KREL))
	$(call each,install)

# $(call each,TARGET): in all directories of user space
define each
	for d in $(PARTS); do \
		$(MAKE) -C $$d DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) $(1) || exit; \
	done
endef

# What the module is built from.
DKMS_SOURCES := dkms.conf version.mk Kbuild kmod uapi LICENSES
SRC := $(DESTDIR)/usr/src/rdma_isolate

# A module of "make install" would be loaded in place of that of dkms, or be taken for
# it.
install-dkms: headers parts ## all of it, the module again for each new kernel by dkms
	! $(DKMS) status rdma_isolate/$(VERSION) | grep . || \
		$(DKMS) remove rdma_isolate/$(VERSION) --all
	$(RM) -r $(SRC)-$(VERSION)
	mkdir -p $(SRC)-$(VERSION)
	cp -r $(DKMS_SOURCES) $(SRC)-$(VERSION)
	$(DKMS) add rdma_isolate/$(VERSION)
	$(DKMS) build rdma_isolate/$(VERSION) -k $(KREL)
	$(RM) $(UPDATES)/rdma_isolate.ko*
	$(DKMS) install rdma_isolate/$(VERSION) -k $(KREL)
	$(call each,install)

# Of all kernels and versions.
uninstall: ## take away what was installed; settings in /etc stay
	! lsmod | grep '^rdma_isolate ' || [ -n "$(DESTDIR)" ] || { \
		echo "the module is loaded: rdma-isolate unload first" >&2; exit 1; }
	for d in $(wildcard $(SRC)-*); do \
		v=$${d##*rdma_isolate-}; \
		! $(DKMS) status rdma_isolate/$$v | grep . || \
			$(DKMS) remove rdma_isolate/$$v --all || exit; \
		$(RM) -r $$d; \
	done
	for k in $(wildcard $(DESTDIR)/lib/modules/*/updates); do \
		[ -e $$k/rdma_isolate.ko ] || ls $$k/rdma_isolate.ko.* >/dev/null 2>&1 || continue; \
		$(RM) $$k/rdma_isolate.ko*; \
		$(if $(DESTDIR),,depmod $$(basename $$(dirname $$k)) || exit;) \
	done
	$(call each,uninstall)
	for d in $(PREFIX)/lib/rdma-isolate $(PREFIX)/share/rdma-isolate \
		$(PREFIX)/share/doc/rdma-isolate /etc/rdma-isolate.d; do \
		rmdir $(DESTDIR)$$d 2>/dev/null || :; \
	done

clean: ## remove what was built
	rm -rf $(BUILD)
	for d in $(PARTS) userspace/tests; do $(MAKE) -C $$d clean || exit; done

.PHONY: all help headers links module parts $(PARTS) selftests check check-full \
	check-unit bench bench-links bench-shim demo demo-kv vm-shell style sparse install \
	install-dkms uninstall clean
