// SPDX-License-Identifier: Apache-2.0
#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/chart/chart.hpp"
#include "recipe/golib/url.hpp"

namespace kmm::recipe::chart {

namespace {

Error bad_archive(const std::string& place, std::string message, std::string_view name = {}) {
    Error error(Exit::data, "bad-archive", std::move(message));
    error.at(Position{place, 0, 0});
    if (!name.empty()) { error.detail("entry", base::escape(name)); }
    return error;
}

/// What libarchive says of its last fault. It says nothing of an archive that ends behind its last file.
std::string reason_of(archive* reader) {
    const char* text = archive_error_string(reader);
    return text == nullptr ? "it ends too early" : base::escape(text);
}

/// The name below the chart's directory. In a name of Windows, '\\' alone stands between directories.
std::string inner_name(const std::string& place, std::string name) {
    const std::size_t slash = name.find(name.find('\\') == std::string::npos ? '/' : '\\');
    for (char& c : name) { c = c == '\\' ? '/' : c; }
    const std::string inner = slash == std::string::npos ? "" : name.substr(slash + 1);
    if (name.starts_with('/') || inner.starts_with('/')) {
        throw bad_archive(place, "the archive has an absolute path", name);
    }
    const std::string clean = tmpl::clean_path(inner);
    if (name == "Chart.yaml") { throw bad_archive(place, "Chart.yaml is not in a directory of the archive", name); }
    if (clean == ".") { throw bad_archive(place, "the archive has a file outside of the chart's directory", name); }
    const std::string whole = "/" + name + "/";
    if (clean.starts_with("..") || whole.find("/../") != std::string::npos) {
        throw bad_archive(place, "the archive has a path with '..'", name);
    }
    if (clean.size() > 2 && clean[1] == ':' && clean[2] == '/') {
        throw bad_archive(place, "the archive has a path with a drive letter", name);
    }
    return clean;
}

std::string read_entry(const std::string& place, archive* reader, const std::string& name, std::size_t& left) {
    std::string data;
    char buffer[16384];
    for (;;) {
        const la_ssize_t size = archive_read_data(reader, buffer, sizeof buffer);
        if (size == 0) { break; }
        if (size < 0) {
            throw bad_archive(place, fmt::format("the archive is damaged: {}", reason_of(reader)), name);
        }
        data.append(buffer, static_cast<std::size_t>(size));
        if (data.size() > k_file_size_max || data.size() > left) {
            throw Error(Exit::data, "recipe-too-large",
                        data.size() > left
                            ? fmt::format("the chart is larger than {}", base::format_bytes(k_chart_size_max))
                            : fmt::format("a file of the chart is larger than {}", base::format_bytes(k_file_size_max)))
                .at(Position{place, 0, 0})
                .detail("entry", base::escape(name));
        }
    }
    left -= data.size();
    if (data.starts_with("\xEF\xBB\xBF")) { data.erase(0, 3); }
    return data;
}

}  // namespace

std::vector<File> read_archive(std::string_view bytes, const std::string& place) {
    if (!bytes.starts_with("\x1f\x8b")) {
        throw bad_archive(place, "the file is not a gzipped archive")
            .hint("name the directory of a chart, or a .tgz of helm package");
    }
    const std::unique_ptr<archive, decltype(&archive_read_free)> reader(archive_read_new(), archive_read_free);
    archive_read_support_filter_gzip(reader.get());
    archive_read_support_format_tar(reader.get());
    if (archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) {
        throw bad_archive(place,
                          fmt::format("the file cannot be read as an archive: {}", reason_of(reader.get())));
    }
    std::vector<File> files;
    std::size_t left = k_chart_size_max;
    for (;;) {
        archive_entry* entry = nullptr;
        const int result = archive_read_next_header(reader.get(), &entry);
        if (result == ARCHIVE_EOF) { break; }
        if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
            throw bad_archive(place, fmt::format("the archive is damaged: {}", reason_of(reader.get())));
        }
        const char* given = archive_entry_pathname(entry);
        const std::string name = given == nullptr ? "" : given;
        if (archive_entry_filetype(entry) == AE_IFDIR) { continue; }
        if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
            throw bad_archive(place, "the archive has a link or a device, expected files and directories only", name);
        }
        std::string inner = inner_name(place, name);
        std::string data = read_entry(place, reader.get(), name, left);
        files.push_back({std::move(inner), std::move(data)});
    }
    if (files.empty()) { throw bad_archive(place, "the archive has no files"); }
    return files;
}

}  // namespace kmm::recipe::chart
