# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
#	make setup		install what the tests need and is missing (apt, PyPI)
#	make modules [KVER=6.12 | KDIR=/path/to/kernel/build [ARCH=um]]
#	make provider [RDMA_CORE_SRC=/path/to/rdma-core]
#	make install [DESTDIR=] [KVER= | KDIR=]
#	make install-provider [DESTDIR=]	all but the module, which comes by DKMS
#	make uninstall [DESTDIR=] [KVER= | KDIR=]	what these two have installed
#	make demo		two links in a VM, ib_write_bw and ib_write_lat
#	make check		the main tests on 6.12, a core set on 6.1, the simulator, a debug kernel
#	make check-all		all tests on both kernels
#	make debugcheck [KERNELS="uml qemu poison kcsan rt"]	the tests on kernels with KASAN, lockdep, KCSAN ...
#	make debugcheck KERNELS=soak	hours of stress on such a kernel; "many": a million objects of each kind
#	make bench		rove beside rdma_rxe and TCP: in a VM, and natively
#	make grow		how cost grows with QPs, processes, MRs, CPUs, sizes; memory
#	make devices		two VMs on virtio-net and e1000e; a VM without IPv6
#	make others [ONLY="7.3 rt"]	the core tests on Debian 13's and Ubuntu's kernels (as root)
#	make migrate		live migration of a VM under checked traffic
#	make sim		the simulator alone: no VM, no root
#	make sim-deep [MESSAGES=100000000] [FROM=1] [SECONDS=]	the simulator, settings drawn at random
#	make fuzz [SECS=240]	the transport and the rings under libFuzzer, ASan and UBSan (installs clang)
#	make sim-cost		instructions of the engine, against the committed figures
#	make clean

SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := all

# --- which kernel ---------------------------------------------------------
# KVER may be a prefix: 6.12 means the newest installed 6.12.  By default the
# running kernel when its headers are there, else the newest that has headers.
have-headers = $(wildcard /lib/modules/$(1)/build/Makefile)
newest = $(shell ls -d /lib/modules/$(1)*/build/Makefile 2>/dev/null | cut -d/ -f4 | \
		grep -E '$(if $(1),^$(subst .,\.,$(1))([^0-9]|$$),.)' | grep -v -e -rt- -e -cloud- | sort -V | tail -n1)
running := $(shell uname -r)

ifdef KDIR
  kdir := $(abspath $(KDIR))
  kver := $(shell $(MAKE) -s -C $(kdir) $(if $(ARCH),ARCH=$(ARCH)) kernelrelease 2>/dev/null)
else
  ifdef KVER
    kver := $(if $(call have-headers,$(KVER)),$(KVER),$(call newest,$(KVER)))
  else
    kver := $(if $(call have-headers,$(running)),$(running),$(call newest,))
  endif
  kdir := /lib/modules/$(kver)/build
endif
bdir := $(CURDIR)/build/$(kver)

kmake = $(MAKE) -C $(kdir) M=$(bdir) $(if $(ARCH),ARCH=$(ARCH)) \
	$(if $(ROVE_TEST_MODULES),ROVE_TEST_MODULES=1)

# where the libibverbs is that the provider is for
libdir ?= $(shell realpath "$$(dirname "$$($(CC) -print-file-name=libibverbs.so)")")

.PHONY: all setup modules provider install install-provider uninstall demo check check-all debugcheck bench grow devices others migrate sim sim-deep fuzz sim-cost clean selftests

all: modules provider

setup:
	@selftests/setup

# Each kernel is built in a tree of symbolic links of its own, so that the
# objects of one do not overwrite those of another and rebuilds are incremental.
modules:
	@test -n "$(kver)" -a -e $(kdir)/Makefile || { \
		echo "no kernel headers for '$(or $(KDIR),$(KVER),$(running))': make setup, or name one with KVER= or KDIR=" >&2; exit 1; }
	@# Two kernels may have one name: what was built for the other does not fit.
	@[ "$$(cat $(bdir)/.kdir 2>/dev/null)" = "$(kdir)" ] || rm -rf $(bdir)
	@mkdir -p $(bdir)
	@echo $(kdir) > $(bdir)/.kdir
	@find -L $(bdir) -type l -not -path '*/.*' -delete
	@find Kbuild drivers include/uapi selftests/kmod \( -name '*.[chS]' -o -name Makefile -o -name Kbuild \) 2>/dev/null | \
	while read -r f; do \
		mkdir -p $(bdir)/$$(dirname $$f); \
		[ "$$(readlink $(bdir)/$$f)" = $(CURDIR)/$$f ] || ln -sfn $(CURDIR)/$$f $(bdir)/$$f; \
	done
	@+flock $(bdir)/.lock $(kmake) modules
	@ln -f $(bdir)/drivers/infiniband/sw/rove/rove.ko $(bdir)/rove.ko
	@echo "built build/$(kver)/rove.ko"

provider:
	@$(MAKE) -C userspace-provider $(if $(RDMA_CORE_SRC),RDMA_CORE_SRC=$(abspath $(RDMA_CORE_SRC)))

selftests:
	@$(MAKE) -C selftests

# The headers have no System.map, so modules_install leaves depmod out; and no
# key of the kernel's: for Secure Boot sign with your own (README).
install: modules install-provider
	$(kmake) $(if $(DESTDIR),INSTALL_MOD_PATH=$(abspath $(DESTDIR))) \
		CONFIG_MODULE_SIG_ALL= modules_install
	$(if $(DESTDIR),,depmod $(kver))

# what "provider" has built
so = $(if $(RDMA_CORE_SRC),$(wildcard $(RDMA_CORE_SRC)/build-rove/lib/librove-rdmav*.so),userspace-provider/librove-rdmav34.so)

install-provider: provider
	install -D -m 644 $(so) $(DESTDIR)$(libdir)/libibverbs/$(notdir $(so))
	install -d $(DESTDIR)/etc/libibverbs.d
	echo "driver rove" > $(DESTDIR)/etc/libibverbs.d/rove.driver
	install -D -m 644 include/uapi/rdma/rove-abi.h $(DESTDIR)/usr/include/rdma/rove-abi.h
	install -D -m 644 userspace-provider/man/rove.7 $(DESTDIR)/usr/share/man/man7/rove.7

# Modules are compressed, or not, as the kernel's are.
uninstall:
	rm -f $(DESTDIR)/lib/modules/$(kver)/updates/drivers/infiniband/sw/rove/rove.ko{,.gz,.xz,.zst}
	rm -f $(DESTDIR)$(libdir)/libibverbs/librove-rdmav*.so $(DESTDIR)/etc/libibverbs.d/rove.driver
	rm -f $(DESTDIR)/usr/include/rdma/rove-abi.h $(DESTDIR)/usr/share/man/man7/rove.7
	$(if $(DESTDIR),,depmod $(kver))

# --- in VMs -----------------------------------------------------------------
demo: setup
	@selftests/demo

check: setup
	@selftests/check

check-all: setup
	@selftests/check --all

debugcheck: setup
	@selftests/debugcheck $(KERNELS)

bench: setup
	@selftests/bench/run

grow: setup
	@selftests/grow/run

devices: setup
	@selftests/devices

others:
	@selftests/setup others
	@selftests/others $(ONLY)

migrate: setup
	@. selftests/kernels.sh; k=$$(main_kernel) && $(MAKE) modules KVER=$$k provider selftests && \
		selftests/vm/migrate -k $$k --times 3

sim:
	@$(MAKE) -C selftests/sim check

sim-deep:
	@$(MAKE) -C selftests/sim deep

fuzz:
	@selftests/setup fuzz
	@$(MAKE) -C selftests/fuzz fuzz

sim-cost:
	@$(MAKE) -C selftests/sim cost

clean:
	rm -rf build
	-@$(MAKE) -C userspace-provider clean
	-@$(MAKE) -C selftests/sim clean
