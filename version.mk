# SPDX-License-Identifier: GPL-2.0
#
# VERSION is that of dkms.conf, the one place that has it.
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' \
	$(dir $(lastword $(MAKEFILE_LIST)))dkms.conf)
