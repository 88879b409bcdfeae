// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/host_index.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "kmod/ko/module_file.hpp"
#include "sys/fd.hpp"

namespace kmm::kmod {

namespace {

constexpr std::uint32_t k_index_magic = 0xB007F457;
constexpr std::uint32_t k_index_version = 0x00020001;
constexpr std::uint64_t k_index_header = 12;
// In the number that says where a node is: which parts it has.
constexpr std::uint32_t k_has_prefix = 0x80000000;
constexpr std::uint32_t k_has_values = 0x40000000;
constexpr std::uint32_t k_has_children = 0x20000000;
constexpr std::uint32_t k_place = 0x0FFFFFFF;
constexpr std::string_view k_wild = "*?[";
constexpr unsigned k_letter_max = 127;  // libkmod takes a greater one for a negative number

/// The bytes of an index from a place on. `whole` is false once one was asked for behind the end of the file.
class IndexBytes {
public:
    explicit IndexBytes(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        struct stat facts {};
        if (fd_ && ::fstat(fd_.get(), &facts) == 0 && S_ISREG(facts.st_mode))
            size_ = static_cast<std::uint64_t>(facts.st_size);
    }

    void go_to(std::uint64_t place) { at_ = place; }
    std::uint8_t byte() {
        if (at_ < begin_ || at_ >= begin_ + filled_) fill();
        if (filled_ == 0) return 0;
        return static_cast<std::uint8_t>(window_[at_++ - begin_]);
    }
    std::uint32_t number() {
        std::uint32_t value = 0;
        for (int i = 0; i < 4; ++i) value = value << 8U | byte();
        return value;
    }
    [[nodiscard]] std::uint64_t place() const { return at_; }
    [[nodiscard]] std::uint64_t size() const { return size_; }
    bool whole = true;

private:
    void fill() {
        begin_ = at_;
        const ssize_t got = ::pread(fd_.get(), window_.data(), window_.size(), static_cast<off_t>(at_));
        filled_ = got > 0 ? static_cast<std::size_t>(got) : 0;
        whole = whole && filled_ > 0;
    }

    sys::Fd fd_;
    std::uint64_t size_ = 0;
    std::uint64_t at_ = 0;
    std::uint64_t begin_ = 0;  ///< of the window in the file
    std::size_t filled_ = 0;
    std::array<char, 1024> window_{};
};

struct IndexNode {
    std::string prefix;
    unsigned first = 1, last = 0;  ///< letters that have children
    std::vector<std::uint32_t> children;

    [[nodiscard]] std::uint32_t child(char letter) const {
        const auto code = static_cast<unsigned>(static_cast<unsigned char>(letter));
        return code < first || code > last ? 0 : children[code - first];
    }
};

/// Goes the way of index_searchwild() of libkmod, which is that of index_search() and more. Each method returns false
/// for what is damaged.
class IndexWalk {
public:
    explicit IndexWalk(const std::string& path) : bytes_(path) {}

    bool is_sound_for(std::string_view name) {
        if (bytes_.size() < k_index_header) return true;
        if (bytes_.number() != k_index_magic || bytes_.number() != k_index_version) return true;
        std::uint32_t next = bytes_.number();
        for (std::uint64_t before = bytes_.size(); (next & k_place) != 0;) {
            IndexNode node;
            if (!read(next, before, node)) return false;
            before = next & k_place;
            const std::size_t wild = std::min(node.prefix.find_first_of(k_wild), node.prefix.size());
            if (!name.starts_with(std::string_view(node.prefix).substr(0, wild))) return true;
            if (wild < node.prefix.size()) return all_below(node, before);
            name.remove_prefix(wild);
            for (const char letter : k_wild) {
                IndexNode branch;
                const std::uint32_t where = node.child(letter);
                if ((where & k_place) == 0) continue;
                if (!read(where, before, branch) || !all_below(branch, where & k_place)) return false;
            }
            if (name.empty()) return true;
            next = node.child(name.front());
            name.remove_prefix(1);
        }
        return true;
    }

private:
    /// The node that `where` says, which is above `before`.
    bool read(std::uint32_t where, std::uint64_t before, IndexNode& node) {
        const std::uint64_t place = where & k_place;
        const bool has_parts = (where & (k_has_prefix | k_has_values | k_has_children)) != 0;
        if (!has_parts) return true;  // of no names: the root is where the file ends
        if (place < k_index_header || place >= before) return false;
        bytes_.go_to(place);
        if ((where & k_has_prefix) != 0) {
            for (char letter = 0; (letter = static_cast<char>(bytes_.byte())) != 0;) node.prefix += letter;
        }
        if ((where & k_has_children) != 0) {
            node.first = bytes_.byte();
            node.last = bytes_.byte();
            if (node.last < node.first || node.last > k_letter_max) return false;
            node.children.resize(node.last - node.first + 1);
            for (std::uint32_t& child : node.children) child = bytes_.number();
        }
        if ((where & k_has_values) != 0) {
            for (std::uint32_t left = bytes_.number(); left > 0 && bytes_.whole; --left) {
                static_cast<void>(bytes_.number());  // its rank
                while (bytes_.byte() != 0) {}
            }
        }
        taken_ += bytes_.place() - place;
        return bytes_.whole && taken_ <= 2 * bytes_.size();  // a name with a wildcard goes twice below it
    }

    bool all_below(const IndexNode& top, std::uint64_t place) {
        std::vector<std::pair<IndexNode, std::uint64_t>> todo{{top, place}};
        while (!todo.empty()) {
            const auto [node, before] = std::move(todo.back());
            todo.pop_back();
            for (const std::uint32_t child : node.children) {
                if ((child & k_place) == 0) continue;
                IndexNode next;
                if (!read(child, before, next)) return false;
                todo.emplace_back(std::move(next), child & k_place);
            }
        }
        return true;
    }

    IndexBytes bytes_;
    std::uint64_t taken_ = 0;  ///< bytes of the nodes read so far
};

}  // namespace

bool is_damaged_for(const std::string& path, const std::string& name) {
    const std::string normal = normalise_name(name);  // libkmod leaves what is between brackets
    return !IndexWalk(path).is_sound_for(normal) || (normal != name && !IndexWalk(path).is_sound_for(name));
}

bool has_damaged_index(const std::string& directory, const std::string& name) {
    static constexpr std::string_view names[] = {"modules.dep.bin", "modules.alias.bin", "modules.symbols.bin",
                                                 "modules.builtin.bin", "modules.builtin.alias.bin"};
    return std::any_of(std::begin(names), std::end(names), [&](std::string_view file) {
        return is_damaged_for(directory + "/" + std::string(file), name);
    });
}

}  // namespace kmm::kmod
