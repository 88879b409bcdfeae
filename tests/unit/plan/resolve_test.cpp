// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "plan/kmm/regexp.hpp"
#include "plan/kmm/resolve.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

namespace {

plan::Resolved resolved(const api::Module& module, std::string_view kernel) {
    const auto resolution = plan::resolve(module, kernel);
    REQUIRE(std::holds_alternative<plan::Resolved>(resolution));
    return std::get<plan::Resolved>(resolution);
}

std::string fault_code(const api::Module& module, std::string_view kernel) {
    const auto resolution = plan::resolve(module, kernel);
    const auto* fault = std::get_if<plan::MappingFault>(&resolution);
    return fault == nullptr ? "" : fault->diagnostic.code;
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("the first mapping that matches wins, literals have no priority") {
        api::Module module = build::module();
        auto& mappings = module.module_loader->container.kernel_mappings;
        mappings = {build::literal("6.1.0-1"), build::regexp("^6\\."), build::literal("6.1.0-2")};
        CHECK(resolved(module, "6.1.0-1").mapping_index == 0);
        CHECK(resolved(module, "6.1.0-1").literal);
        CHECK(resolved(module, "6.1.0-2").mapping_index == 1);
        CHECK_FALSE(resolved(module, "6.1.0-2").literal);
        CHECK(std::holds_alternative<plan::NoMapping>(plan::resolve(module, "5.10.0-1")));
    }

    TEST_CASE("regexps search anywhere, with Go's syntax") {
        struct Row {
            const char* regexp;
            const char* subject;
            bool found;
        };
        for (const Row& row : {
                 Row{"1.2.2", "1.2.3", false},
                 Row{"2.3", "1.2.3", true},
                 Row{"^6\\.1", "6.1.0", true},
                 Row{"(?i)AMD64$", "6.1.0-amd64", true},
                 Row{"amd64$", "6.1.0-amd64\n", false},
                 Row{"(?<x>6)\\.1", "6.1.0", true},
                 Row{"(?P<x>6)\\.1", "6.1.0", true},
                 Row{"[(?<]x", "?x", true},
                 Row{"[](?<x]+z", "](z", true},
                 Row{"\\(?<x", "<x", true},
                 Row{"\\Q(?<x\\E", "a(?<xb", true},
                 Row{"\\pL+", "12a", true},
             }) {
            CAPTURE(row.regexp);
            const plan::Regexp regexp(row.regexp);
            CHECK(regexp.error() == "");
            CHECK(regexp.search(row.subject) == row.found);
        }
        for (const auto* bad : {"(", "[a", "(?=x)", "(?<!x)", "(?<=x)", "(a)\\1", "a{1001}", "\\C", "*"}) {
            CAPTURE(bad);
            const plan::Regexp regexp(bad);
            CHECK(regexp.error() != "");
            CHECK_FALSE(regexp.search(bad));
        }
    }

    TEST_CASE("a bad regexp is a fault, but only when it is reached") {
        api::Module module = build::module();
        module.module_loader->container.kernel_mappings = {build::literal("6.1.0-1"), build::regexp("(")};
        module.module_loader->container.kernel_mappings[1].matcher_origin = Position{"m.yaml", 7, 3};
        CHECK(fault_code(module, "6.1.0-1").empty());
        CHECK(fault_code(module, "6.1.0-2") == "bad-regexp");
        const auto resolution = plan::resolve(module, "6.1.0-2");
        CHECK(std::get<plan::MappingFault>(resolution).diagnostic.position == Position{"m.yaml", 7, 3});
    }

    TEST_CASE("one trailing plus is trimmed for matching and tagging, the real name is kept") {
        api::Module module = build::module();
        module.module_loader->container.kernel_mappings = {build::literal("6.1.0")};
        const plan::Resolved result = resolved(module, "6.1.0+");
        CHECK(result.kernel == "6.1.0");
        CHECK(result.kernel_real == "6.1.0+");
        CHECK(result.config.kernel_version == "6.1.0");
        CHECK(result.config.container_image == "registry.example/kmm-hello:x-6.1.0");
    }

    TEST_CASE("the kernel is normalised in the image, not in the configuration") {
        const plan::Resolved result = resolved(build::module(), "6.1.0~x-1");
        CHECK(result.config.container_image == "registry.example/kmm-hello:x-6.1.0_x-1");
        CHECK(result.config.kernel_version == "6.1.0~x-1");
    }

    TEST_CASE("a mapping's fields replace the container's") {
        api::Module module = build::module();
        auto& container = module.module_loader->container;
        container.registry_tls.insecure = true;
        container.in_tree_modules_to_remove = {"a", "b"};
        container.image_pull_policy = "Always";

        CHECK(resolved(module, "6.1.0-1").config.insecure_pull);
        CHECK(resolved(module, "6.1.0-1").config.in_tree_modules_to_remove == std::vector<std::string>{"a", "b"});
        CHECK(resolved(module, "6.1.0-1").config.image_pull_policy == "Always");
        CHECK(resolved(module, "6.1.0-1").config.modprobe.dir_name == "/opt");

        container.kernel_mappings[0].registry_tls = api::TlsOptions{};
        container.kernel_mappings[0].in_tree_modules_to_remove = std::vector<std::string>{};
        container.kernel_mappings[0].container_image = "other/$MOD_NAMESPACE/$MOD_NAME:$KERNEL_XYZ";
        CHECK_FALSE(resolved(module, "6.1.0-1").config.insecure_pull);
        CHECK(resolved(module, "6.1.0-1").config.in_tree_modules_to_remove.empty());
        CHECK(resolved(module, "6.1.0-1").config.container_image == "other/drivers/kmm-hello:6.1.0");

        container.kernel_mappings[0].registry_tls->insecure_skip_tls_verify = true;
        CHECK(resolved(module, "6.1.0-1").config.insecure_pull);
    }

    TEST_CASE("the deprecated single in-tree module wins over every list") {
        api::Module module = build::module();
        auto& container = module.module_loader->container;
        container.in_tree_module_to_remove = "old";
        container.kernel_mappings[0].in_tree_modules_to_remove = std::vector<std::string>{"x", "y"};
        CHECK(resolved(module, "6.1.0-1").config.in_tree_modules_to_remove == std::vector<std::string>{"old"});
        container.kernel_mappings[0].in_tree_module_to_remove = "newer";
        CHECK(resolved(module, "6.1.0-1").config.in_tree_modules_to_remove == std::vector<std::string>{"newer"});
        CHECK(resolved(module, "6.1.0-1").config.in_tree_module_to_remove.empty());
    }

    TEST_CASE("build: one side alone, else the container's with the mapping's parts that KMM takes") {
        api::Module module = build::module();
        auto& container = module.module_loader->container;
        auto& mapping = container.kernel_mappings[0];
        CHECK_FALSE(resolved(module, "6.1.0-1").build.has_value());
        api::Build base;
        base.dockerfile_config_map = "base";
        base.build_args = {{"A", "1"}, {"B", "2"}};
        base.secrets = {"s1"};
        base.kaniko_tag = "k1";
        base.selector = {{"build", "yes"}};
        base.base_image_registry_tls.insecure = true;
        api::Build over;
        over.build_args = {{"Z", "z"}, {"B", "3"}, {"Y", "$KERNEL_XYZ"}};
        over.secrets = {"s2"};
        over.kaniko_tag = "k2";
        over.selector = {{"other", "yes"}};
        container.build = base;
        CHECK(resolved(module, "6.1.0-1").build == base);
        mapping.build = over;
        api::Build merged = base;
        merged.build_args = {{"A", "1"}, {"B", "3"}, {"Y", "$KERNEL_XYZ"}, {"Z", "z"}};
        merged.secrets = {"s1", "s2"};
        CHECK(resolved(module, "6.1.0-1").build == merged);
        mapping.build->dockerfile_config_map = "over";
        CHECK(resolved(module, "6.1.0-1").build->dockerfile_config_map == "over");
        container.build.reset();
        CHECK(resolved(module, "6.1.0-1").build == mapping.build);
    }

    TEST_CASE("sign: files are appended, texts expanded, without the Module's names") {
        api::Module module = build::module();
        auto& container = module.module_loader->container;
        auto& mapping = container.kernel_mappings[0];
        api::Sign base;
        base.cert_secret = "c1";
        base.key_secret = "k1";
        base.unsigned_image = "r/i:$KERNEL_XYZ-unsigned";
        base.files_to_sign = {"/opt/lib/modules/${KERNEL_FULL_VERSION}/a.ko"};
        base.unsigned_image_registry_tls.insecure = true;
        api::Sign over;
        over.key_secret = "k2";
        over.files_to_sign = {"/opt/b.ko"};
        container.sign = base;
        mapping.sign = over;
        const auto sign = resolved(module, "6.1.0-1").sign;
        REQUIRE(sign.has_value());
        CHECK(sign->cert_secret == "c1");
        CHECK(sign->key_secret == "k2");
        CHECK(sign->unsigned_image == "r/i:6.1.0-unsigned");
        CHECK(sign->unsigned_image_registry_tls.insecure);
        CHECK(sign->files_to_sign == std::vector<std::string>{"/opt/lib/modules/6.1.0-1/a.ko", "/opt/b.ko"});
        mapping.sign->unsigned_image = "r/i:$MOD_NAME";
        CHECK(fault_code(module, "6.1.0-1") == "unknown-template-variable");
        mapping.sign->unsigned_image = "r/i:${KERNEL_X";
        CHECK(fault_code(module, "6.1.0-1") == "bad-template");
    }

    TEST_CASE("registryTLS is the mapping's or the container's, never a mixture") {
        api::Module module = build::module();
        auto& container = module.module_loader->container;
        container.registry_tls.insecure = true;
        CHECK(resolved(module, "6.1.0-1").registry_tls.insecure);
        container.kernel_mappings[0].registry_tls = api::TlsOptions{};
        container.kernel_mappings[0].registry_tls->insecure_skip_tls_verify = true;
        CHECK_FALSE(resolved(module, "6.1.0-1").registry_tls.insecure);
        CHECK(resolved(module, "6.1.0-1").registry_tls.insecure_skip_tls_verify);
    }

    TEST_CASE("faults of the image are distinct from no match") {
        api::Module module = build::module();
        auto& image = module.module_loader->container.container_image;
        CHECK(fault_code(module, "6.1") == "kernel-unparsable");
        for (const std::string kernel :
             {"", "../../etc", "6.1.0-1/x", "6.1.0 x-1", "6.1.0-1\n", "6.1.0-\xc3\xa9", ".6.1.0-1"}) {
            CAPTURE(kernel);
            CHECK(fault_code(module, kernel) == "kernel-unparsable");
        }
        CHECK(fault_code(module, "6.1.0-" + std::string(59, 'a')) == "kernel-unparsable");
        CHECK(resolved(module, "6.1.0-" + std::string(58, 'a')).config.kernel_version.size() == 64);
        CHECK(resolved(module, "6.1.0-1~rc1+b2").config.kernel_version == "6.1.0-1~rc1+b2");
        image = "r/i:${KERNEL_FUL_VERSION}";
        CHECK(fault_code(module, "6.1.0-1") == "unknown-template-variable");
        const auto resolution = plan::resolve(module, "6.1.0-1");
        CHECK(std::get<plan::MappingFault>(resolution).diagnostic.hint == "did you mean KERNEL_FULL_VERSION?");
        image = "r/i:${KERNEL_XYZ";
        CHECK(fault_code(module, "6.1.0-1") == "bad-template");
        image = "";
        CHECK(fault_code(module, "6.1.0-1") == "missing-image");
        image = "r/i:${UNKNOWN:-latest}";
        CHECK(resolved(module, "6.1.0-1").config.container_image == "r/i:latest");
    }

    TEST_CASE("attempts tell what was tried, in order, and stop at the end of the search") {
        api::Module module = build::module();
        module.module_loader->container.kernel_mappings = {build::literal("a"), build::regexp("b"), build::regexp("6"),
                                                           build::regexp("(")};
        const plan::Resolver resolver(module);
        const auto attempts = resolver.attempts("6.1.0");
        REQUIRE(attempts.size() == 3);
        CHECK(attempts[0].literal);
        CHECK_FALSE(attempts[1].matched);
        CHECK(attempts[2].matched);
        CHECK(attempts[2].index == 2);
    }

    TEST_CASE("a resolver that has been asked for more kernels than it remembers still answers as the free function") {
        api::Module module = build::module();
        module.module_loader->container.kernel_mappings = {build::literal("6.1.3-7"), build::regexp("^6\\.1\\.[0-5]-")};
        const plan::Resolver resolver(module);
        for (int round = 0; round < 2; ++round) {
            for (int i = 0; i < 400; ++i) {
                const std::string kernel = fmt::format("6.1.{}-{}{}", i % 8, i, i % 3 == 0 ? "+" : "");
                CAPTURE(kernel);
                const auto one = resolver.resolve(kernel), two = plan::resolve(module, kernel);
                REQUIRE(one.index() == two.index());
                const auto* found = std::get_if<plan::Resolved>(&one);
                CHECK((found != nullptr) == (i % 8 <= 5));
                if (found == nullptr) { continue; }
                CHECK(found->mapping_index == std::get<plan::Resolved>(two).mapping_index);
                CHECK(found->config == std::get<plan::Resolved>(two).config);
                CHECK(found->kernel_real == kernel);
            }
        }
    }

    TEST_CASE("a Module without moduleLoader has no mapping") {
        api::Module module = build::module();
        module.module_loader.reset();
        CHECK(std::holds_alternative<plan::NoMapping>(plan::resolve(module, "6.1.0")));
    }
}
