// SPDX-License-Identifier: Apache-2.0
#include "recipe/functions/functions.hpp"

#include <initializer_list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "recipe/sprig/sprig.hpp"
#include "recipe/template/engine.hpp"

namespace kmm::recipe::tmpl {

namespace {

class Tables : public Library {
public:
    explicit Tables(std::initializer_list<std::span<const Function>> tables) {
        for (const auto functions : tables) {
            for (const auto& function : functions) { functions_[function.name] = &function; }
        }
        for (const auto& [name, function] : functions_) { names_.emplace_back(name); }
    }

    const Function* find(std::string_view name) const override {
        const auto found = functions_.find(name);
        return found == functions_.end() ? nullptr : found->second;
    }
    const std::vector<std::string>& names() const override { return names_; }
    BoundMethod method(const Value& receiver, std::string_view name) const override {
        return find_method(receiver, name);
    }

private:
    std::map<std::string_view, const Function*> functions_;
    std::vector<std::string> names_;
};

}  // namespace

const Library& chart_library() {
    static const Tables library{builtin_functions(), text_functions(), case_functions(), number_functions(),
                                list_functions(), dict_functions(), type_functions(), encoding_functions(),
                                digest_functions(), path_functions(), regex_functions(), version_functions(),
                                time_functions(), random_functions(), helm_functions()};
    return library;
}

const Library& go_library() {
    static const Tables library{builtin_functions()};
    return library;
}

std::string expand_text(const std::string& name, const std::string& text, const Value& dot,
                        std::function<void(Diagnostic)> notice) {
    Run run(go_library(), {});
    run.notice = std::move(notice);
    run.missing_is_invalid = true;
    Scope scope;
    for (auto& tree : parse(name, std::make_shared<Source>(Source{name, text}), go_library(), run.budget)) {
        scope.add(std::move(tree));
    }
    const Tree* tree = scope.find(name);
    return tree == nullptr ? std::string() : execute(run, scope, *tree, dot);
}

}  // namespace kmm::recipe::tmpl
