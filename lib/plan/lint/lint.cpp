// SPDX-License-Identifier: Apache-2.0
#include "plan/lint/lint.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/module_name.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "plan/decide/order.hpp"
#include "plan/decide/policy.hpp"
#include "plan/kmm/hub_module.hpp"
#include "plan/kmm/image_name.hpp"
#include "plan/kmm/regexp.hpp"
#include "plan/kmm/template.hpp"

namespace kmm::plan {

namespace {

constexpr std::size_t k_names_length_documented = 39;  // KMM's documents and the seed; the webhook takes 40, later 41
constexpr std::size_t k_names_length_webhook = 40;
/// Bytes that a shell takes as they are. The operator puts paths into `sh -c` unquoted.
constexpr std::string_view k_plain_path = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%,=";

/// Places and messages about one Module.
class Linter {
public:
    /// `subject` begins each message.
    Linter(const api::Module& module, std::string subject, Diagnostics& diagnostics)
        : module_(module),
          container_(module.module_loader->container),
          subject_(std::move(subject)),
          diagnostics_(diagnostics) {}

    void run() {
        names();
        images();
        for (std::size_t i = 0; i < container_.kernel_mappings.size(); ++i) { matcher(i); }
        unreachable();
        paths();
        parameters();
        sign(container_.sign, "sign");
        for (std::size_t i = 0; i < container_.kernel_mappings.size(); ++i) {
            sign(container_.kernel_mappings[i].sign, fmt::format("kernelMappings[{}].sign", i));
        }
    }

private:
    void report(Severity severity, const std::string& field, std::string code, const std::string& message,
                std::string hint) {
        Diagnostic diagnostic;
        diagnostic.severity = severity;
        diagnostic.code = std::move(code);
        diagnostic.message = fmt::format("{}: {}", subject_, message);
        const auto place =
            module_.places.find(field.starts_with("metadata") ? field : "spec.moduleLoader.container." + field);
        if (place != module_.places.end()) {
            diagnostic.position = place->second;
        } else if (!module_.meta.origin.file.empty()) {
            diagnostic.position = module_.meta.origin;
        }
        diagnostic.hint = std::move(hint);
        diagnostics_.push_back(std::move(diagnostic));
    }

    void names() {
        const std::size_t length = module_.meta.name.size() + module_.meta.namespace_.size();
        if (length <= k_names_length_documented || length > k_names_length_webhook) { return; }
        report(Severity::note, "metadata.name", "name-too-long",
               fmt::format(
                   "name and namespace together have {} characters: KMM's documents allow {}, its webhook {} up to "
                   "v2.6.0 and 41 since",
                   length, k_names_length_documented, k_names_length_webhook),
               "nothing, unless your own checks follow the documents");
    }

    /// `one_build`: a digest can stand there, as the text is for one image that somebody else made.
    void image(const std::string& field, const std::string& text, bool one_build) {
        // What stands in the braces of a template that cannot be read is no part of a name.
        const bool is_readable = expand(text, {}).error.empty();
        if (text.empty() || text.find('@') != std::string::npos || !is_readable) { return; }
        const std::size_t slash = text.find_last_of('/');
        const bool tagged = text.find(':', slash == std::string::npos ? 0 : slash) != std::string::npos;
        if (!tagged && text.find(':') != std::string::npos) {
            report(Severity::warning, field, "image-port-tag",
                   fmt::format("image \"{}\" has no tag: KMM takes the registry's port for one", base::escape(text)),
                   "add :TAG, or better @sha256:DIGEST");
        } else if (tagged && one_build && (text.find('$') != std::string::npos || !image_name_fault(text))) {
            report(
                Severity::note, field, "image-by-tag",
                fmt::format("image \"{}\" is named by a tag, which can come to mean another image", base::escape(text)),
                "write it as @sha256:DIGEST");
        }
    }

    void images() {
        const auto& mappings = container_.kernel_mappings;
        const auto has_variables = [](const std::string& text) { return text.find('$') != std::string::npos; };
        const auto is_made = [&](const api::KernelMapping* mapping) {
            return container_.build || container_.sign || (mapping != nullptr && (mapping->build || mapping->sign));
        };
        const bool made_somewhere =
            std::any_of(mappings.begin(), mappings.end(), [&](const auto& mapping) { return is_made(&mapping); });
        image("containerImage", container_.container_image,
              !has_variables(container_.container_image) && !is_made(nullptr) && !made_somewhere);
        for (std::size_t i = 0; i < mappings.size(); ++i) {
            const std::string& text = mappings[i].container_image;
            const bool one_kernel = !has_variables(text) || !mappings[i].literal.empty();
            image(fmt::format("kernelMappings[{}].containerImage", i), text, one_kernel && !is_made(&mappings[i]));
        }
    }

    void matcher(std::size_t index) {
        const std::string& text = container_.kernel_mappings[index].regexp;
        if (text.empty() || takes_everything(text) || !Regexp(text).error().empty()) { return; }
        const std::string field = fmt::format("kernelMappings[{}].regexp", index);
        if (const Impossible found = never_matches(text); !found.why.empty()) {
            report(Severity::warning, field, "regexp-impossible",
                   fmt::format("regexp \"{}\" never matches: {}", base::escape(text), found.why), found.hint);
            return;
        }
        if (wants_last_plus(text)) {
            report(Severity::warning, field, "regexp-impossible",
                   fmt::format("regexp \"{}\" never matches: KMM drops one trailing '+' of the kernel version",
                               base::printable(text)),
                   "write it without the '+' before '$'");
            return;
        }
        if (open_at_start(text) && !names_the_end(text)) {
            report(Severity::warning, field, "regexp-unanchored",
                   fmt::format("regexp \"{}\" is found anywhere in a kernel version, not only at its beginning", text),
                   "begin it with '^'; KMM anchors nothing");
        } else if (text.back() >= '0' && text.back() <= '9') {
            report(Severity::note, field, "regexp-unanchored",
                   fmt::format("regexp \"{}\" ends with a digit, and more digits may follow in a kernel version", text),
                   "end it with '$', or with what comes after the number");
        }
        if (const std::string meant = with_literal_plus(text); meant != text) {
            report(Severity::warning, field, "regexp-plus",
                   fmt::format("regexp \"{}\": '+' repeats what stands before it; the +rt, +64k or +debug of a kernel "
                               "version is written [+]rt, [+]64k or [+]debug",
                               text),
                   fmt::format("write {}", meant));
        }
        if (has_bare_dot(text)) {
            report(Severity::warning, field, "regexp-bare-dot",
                   fmt::format("regexp \"{}\" has a '.' between digits, which stands for any character", text),
                   "write [.] for a dot");
        }
    }

    /// Why a regexp matches no kernel version, and what to write; no reason for one that may match.
    struct Impossible {
        std::string_view why;
        const char* hint = "write it without; a kernel version is what uname -r prints";
    };

    /// The last character of the escape that begins at `begin`, also of \pL and \p{Greek}; beyond the text without
    /// one.
    static std::size_t end_of_escape(std::string_view text, std::size_t begin) {
        const std::string_view rest = text.substr(begin + 1);
        if (!rest.starts_with('p') && !rest.starts_with('P')) { return begin + 1; }
        return rest.substr(1).starts_with('{') ? text.find('}', begin) : begin + 2;
    }

    /// The bracket that ends the class that begins at `begin`; beyond the text without one. A ']' may be the first in
    /// it, and [:space:] has one of its own.
    static std::size_t end_of_class(std::string_view text, std::size_t begin) {
        std::size_t at = begin + (text.substr(begin + 1).starts_with('^') ? 3 : 2);
        while (at - 1 < text.size()) {
            const std::size_t named = text.find("[:", at - 1), end = text.find(']', at);
            if (named >= end) { return end; }
            at = text.find(":]", named + 2);
            if (at == std::string_view::npos) { return at; }
            at += 2;
        }
        return std::string_view::npos;
    }

    /// Outside of classes, groups and alternatives: a character that no kernel version has, or one that must stand
    /// before the beginning or behind the end.
    static Impossible never_matches(std::string_view text) {
        if (text.find('|') != std::string_view::npos) { return {}; }
        text = text.substr(0, std::min(text.find('('), text.find("\\Q")));
        bool has_begun = false, has_ended = false;
        for (std::size_t i = 0; i < text.size(); ++i) {
            const char c = text[i];
            const bool is_escape = c == '\\', is_class = c == '[';
            if (is_escape) { i = end_of_escape(text, i); }
            if (is_class) { i = end_of_class(text, i); }
            if (i >= text.size()) { break; }
            const std::string_view next = text.substr(std::min(i + 1, text.size()), 1);
            if (next == "?" || next == "*" || next == "{" || c == '?' || c == '*' || c == '+') { continue; }
            if (c == '{') {
                i = std::min(text.find('}', i), text.size());
                continue;
            }
            if (is_escape && std::string_view("bBAz").find(text[i]) != std::string_view::npos) { continue; }
            if (c == '^' && has_begun) {
                return {"something stands before '^', the beginning", "write '^' first, or remove it"};
            }
            if (c == '$') {
                has_ended = true;
                continue;
            }
            if (c == '^') { continue; }
            if (has_ended) { return {"something stands behind '$', the end", "write '$' last, or remove it"}; }
            has_begun = true;
            if (is_escape || is_class) { continue; }
            if (static_cast<unsigned char>(c) >= 0x80) { return {"no kernel version has a character beyond ASCII"}; }
            if (c == ' ' || c == '\t' || c == '\n') { return {"no kernel version has a blank or a line end"}; }
            if (c == '"' || c == '\'' || c == '`') { return {"no kernel version has a quotation mark"}; }
        }
        return {};
    }

    /// A '+' as the last character, which no version has once KMM has dropped it. Alternatives are not looked at.
    static bool wants_last_plus(std::string_view text) {
        if (text.find('|') != std::string_view::npos) { return false; }
        return text.ends_with("[+]$") || (text.ends_with("\\+$") && !text.ends_with("\\\\+$"));
    }

    static bool open_at_start(std::string_view text) {
        while (text.starts_with("(")) {  // groups and flags: (?i)^6, (^6|^5), (?:^6)
            const std::size_t flags = text.starts_with("(?") ? text.find_first_of(":)>") : 0;
            if (flags == std::string_view::npos) { return false; }
            text.remove_prefix(flags + 1);
        }
        if (text.empty()) { return false; }
        return !text.starts_with("^") && !text.starts_with("\\A") && !text.starts_with(".*") && !text.starts_with(".+");
    }

    /// Whether it is about the end of a kernel version, as \\.el9$ is: the number that such an end begins with could
    /// stand at any place, other text could not.
    static bool names_the_end(std::string_view text) {
        if (!text.ends_with('$') || text.ends_with("\\$")) { return false; }
        const auto first = text.find_first_not_of('(');
        return text.substr(first).find_first_of("0123456789.[") != 0 && !text.substr(first).starts_with("\\d");
    }

    static bool has_bare_dot(std::string_view text) {
        const auto digit = [](char c) { return c >= '0' && c <= '9'; };
        bool in_class = false;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text.substr(i).starts_with("\\Q")) {
                const std::size_t end = text.find("\\E", i);
                if (end == std::string_view::npos) { return false; }
                i = end + 1;
                continue;
            }
            if (text[i] == '\\') {
                ++i;
                continue;
            }
            if (text[i] == '[') { in_class = true; }
            if (text[i] == ']') { in_class = false; }
            if (!in_class && text[i] == '.' && i > 0 && i + 1 < text.size() && digit(text[i - 1]) &&
                digit(text[i + 1])) {
                return true;
            }
        }
        return false;
    }

    /// A regexp after one that takes everything; what stands there twice is among the rules.
    void unreachable() {
        const auto& mappings = container_.kernel_mappings;
        const auto all = std::find_if(mappings.begin(), mappings.end(), [](const api::KernelMapping& mapping) {
            return takes_everything(mapping.regexp);
        });
        if (all == mappings.end()) { return; }
        const auto first = static_cast<std::size_t>(all - mappings.begin());
        for (std::size_t i = first + 1; i < mappings.size(); ++i) {
            if (mappings[i].regexp.empty() || mappings[i].regexp == all->regexp) { continue; }
            report(Severity::warning, fmt::format("kernelMappings[{}].regexp", i), "mapping-unreachable",
                   fmt::format("kernelMappings[{}] is never used: kernelMappings[{}] matches every kernel", i, first),
                   "the first match in list order wins; move this mapping up");
        }
    }

    void path(const std::string& field, const std::string& text) {
        if (text.find("${") != std::string::npos || text.find("$KERNEL") != std::string::npos) {
            report(Severity::warning, field, "path-variable",
                   fmt::format("path \"{}\" has a variable, which KMM replaces in names of images only",
                               base::escape(text)),
                   "write the path as it is in the image");
            return;
        }
        const std::size_t bad = text.find_first_not_of(k_plain_path);
        if (bad == std::string::npos) { return; }
        report(Severity::warning, field, "path-characters",
               fmt::format("path \"{}\" has \"{}\", which the operator's shell command does not take as it is",
                           base::escape(text), base::escape(std::string_view(text).substr(bad, 1))),
               "use letters, digits and / . _ - only");
    }

    /// modprobe -d looks for lib/modules/KERNEL below the directory that it is given.
    void above_modules(const std::string& text) {
        constexpr std::string_view k_modules = "/lib/modules";
        const auto at = text.find(k_modules);
        if (at == std::string::npos) { return; }
        if (const auto end = at + k_modules.size(); end != text.size() && text[end] != '/') { return; }
        report(Severity::warning, "modprobe.dirName", "dirname-modules",
               fmt::format("dirName \"{}\" leads to the modules themselves; modprobe looks for lib/modules/KERNEL "
                           "below it",
                           base::escape(text)),
               fmt::format("write {}", at == 0 ? "/" : base::escape(text.substr(0, at))));
    }

    void paths() {
        path("modprobe.dirName", container_.modprobe.dir_name);
        above_modules(container_.modprobe.dir_name);
        path("modprobe.firmwarePath", container_.modprobe.firmware_path);
    }

    /// Whether there is a blank beside the '=' at `equals`, if there is one.
    static bool has_blank(const std::string& text, std::size_t equals) {
        return equals != std::string::npos &&
               ((equals > 0 && text[equals - 1] == ' ') || (equals + 1 < text.size() && text[equals + 1] == ' '));
    }

    /// Whether the value after `equals` goes on with another parameter: "1 b=2". modprobe puts a value with blanks
    /// between quotes, if it has none. Source: kmod tools/modprobe.c, options_from_array.
    static bool holds_another(const std::string& text, std::size_t equals) {
        if (equals == std::string::npos || text.find_first_of("\"'", equals) == equals + 1) { return false; }
        const auto blank = text.find(' ', equals);
        return blank != std::string::npos && text.find('=', blank) != std::string::npos;
    }

    /// What can be seen of parameters without the module: each text goes to modprobe, and as it is to the kernel, which
    /// parts it at blanks outside quotes.
    void parameters() {
        std::map<std::string, std::string> seen;
        const auto& all = container_.modprobe.parameters;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::string& text = all[i];
            const auto odd = [&](const std::string& how, std::string hint) {
                report(Severity::warning, fmt::format("modprobe.parameters[{}]", i), "odd-parameter",
                       fmt::format("parameter \"{}\" {}", base::escape(text), how), std::move(hint));
            };
            const auto equals = text.find('=');
            const std::string name(base::trim(std::string_view(text).substr(0, equals)));
            if (text.find("${") != std::string::npos || text.find("$KERNEL") != std::string::npos) {
                odd("has a variable, which KMM replaces in names of images only", "write the value itself");
            } else if (text.starts_with('-')) {
                odd("is an option to modprobe, not a parameter of the module",
                    "remove it, or write it into modprobe.args.load");
            } else if (has_blank(text, equals) && name.find_first_of(" \"") == std::string::npos) {
                odd("has a blank beside its '=': the kernel takes it for several parameters",
                    fmt::format("write {}={}", name, base::trim(std::string_view(text).substr(equals + 1))));
            } else if (holds_another(text, equals)) {
                odd(fmt::format("is one parameter for modprobe: {} gets the text \"{}\"", base::escape(name),
                                base::escape(std::string_view(text).substr(equals + 1))),
                    "write each parameter as an entry of its own, or the value between quotes if it is one text");
            } else if (equals != std::string::npos && text.ends_with(' ')) {
                odd("ends with a blank, which is part of the value", fmt::format("write {}", base::trim(text)));
            } else if (const auto [before, first] = seen.try_emplace(base::kernel_module_name(name), text);
                       !name.empty() && !first && before->second != text) {
                odd(fmt::format("comes after \"{}\": the kernel sets both, and the last stays",
                                base::escape(before->second)),
                    "give it once");
            }
        }
    }

    void sign(const std::optional<api::Sign>& section, const std::string& field) {
        if (!section) { return; }
        for (std::size_t i = 0; i < section->files_to_sign.size(); ++i) {
            const std::string& file = section->files_to_sign[i];
            const auto pieces = base::split(file, '/');
            if (std::find(pieces.begin(), pieces.end(), "..") == pieces.end()) { continue; }
            report(Severity::warning, fmt::format("{}.filesToSign[{}]", field, i), "sign-outside",
                   fmt::format("filesToSign: {} leads out of its directory, which KMM does not notice",
                               base::escape(file)),
                   "write the path without '..'");
        }
    }

    const api::Module& module_;
    const api::ModuleLoaderContainer& container_;
    const std::string subject_;
    Diagnostics& diagnostics_;
};

/// `nodes`: those that the Module may select.
void lint_as(const api::Module& module, const std::string& subject, const std::vector<api::Node>& nodes,
             Diagnostics& diagnostics) {
    if (!module.module_loader) { return; }
    Linter(module, subject, diagnostics).run();
    check_making(module, subject, nodes, diagnostics);
}

}  // namespace

bool takes_everything(std::string_view regexp) {
    constexpr std::array all{".*", ".+", "^.*", "^.+",  ".*$",  ".+$",    "^.*$",  "^.+$",
                             "^",  "$",  ".",   "(.*)", "(.+)", "^(.*)$", "^(.+)$"};
    return std::find(all.begin(), all.end(), regexp) != all.end();
}

void lint_module(const api::Module& module, Diagnostics& diagnostics) {
    lint_as(module, fmt::format("Module {}", module.full_name()), {}, diagnostics);
}

Diagnostics lint(const api::Objects& objects) {
    Diagnostics diagnostics;
    for (const auto* list : {&objects.modules, &objects.doubles}) {
        for (const auto& module : *list) {
            lint_as(module, fmt::format("Module {}", module.full_name()), objects.nodes, diagnostics);
            check_policy(module, diagnostics);
        }
    }
    for (const auto& object : objects.managed_cluster_modules) {
        lint_as(module_of(object), fmt::format("ManagedClusterModule {}", object.meta.name), {}, diagnostics);
    }
    check_own_keys(objects, diagnostics);
    check_pod_security(objects, diagnostics);
    check_loaded_known(objects, diagnostics);
    check_selectors(objects, diagnostics);
    check_shared_images(objects, diagnostics);
    check_builds(objects, diagnostics);
    check_hub_images(objects, diagnostics);
    check_needs(objects.modules, diagnostics);
    return diagnostics;
}

}  // namespace kmm::plan
