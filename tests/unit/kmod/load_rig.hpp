// SPDX-License-Identifier: Apache-2.0
// An image of two modules, a host and a kernel to load them into.
#pragma once

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "kmod/load/procedure.hpp"
#include "unit/kmod/fixtures.hpp"

namespace kmm::test {

/// An image with modules `demo` (needs `dep`) and `dep`, and everything to load them.
struct LoadRig {
    FakeHost host;
    FakeClock clock;
    FakeKernel kernel{host};
    sys::TempDir out{"kmm-image-"};
    kmod::ModuleIndex index;
    kmod::LoadRequest request{"demo", {}, {}, {}};
    kmod::FirmwareRequest firmware;

    LoadRig() {
        KoSpec dep;
        dep.name = "dep";
        dep.srcversion = "DDDD";
        dep.exported = {"dep_symbol"};
        KoSpec demo;
        demo.depends = "dep";
        demo.undefined = {"dep_symbol", "_printk"};
        demo.modinfo = {"parmtype=answer:int", "parmtype=who:charp", "version=2"};
        put(out.path() + "/opt/dep.ko", make_ko(dep));
        put(out.path() + "/opt/demo.ko", make_ko(demo));
        index = kmod::ModuleIndex::build(out.path() + "/opt", out.path());
    }
    kmod::Report load() {
        const auto checked = kmod::preflight(index, request, host.paths);
        kmod::require_passed(checked, request.module);
        return kmod::load_modules(index, checked, request, firmware, {host.paths, kernel, clock, {}});
    }
    Error refused() {
        try {
            (void)load();
        } catch (const Error& error) {
            return error;
        }
        FAIL("no error");
        throw bug("unreachable");
    }
};

}  // namespace kmm::test
