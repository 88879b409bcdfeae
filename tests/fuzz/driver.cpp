// SPDX-License-Identifier: Apache-2.0
// Runs a target over its corpus and over mutations of it for a number of seconds: what libFuzzer does, with g++. In the
// build with sanitizers the rooms that read what others wrote tell every step they take (-fsanitize-coverage=trace-pc):
// an input that gets somewhere new, or somewhere more often, is mutated further. Linked with clang's -fsanitize=fuzzer
// instead, the targets need no change.
//
//     fuzz_TARGET CORPUS_DIR | fuzz_TARGET FILE
//     KMM_FUZZ_SECONDS (default 20), KMM_FUZZ_SEED (default 1: a run that is no hunt begins as the last one)
//     KMM_FUZZ_KEEP=DIR: the inputs that got somewhere new are written there
//
// An input that crashes, hangs for ten seconds or breaks a property is left in crash-TARGET in the current directory.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "fuzz/target.hpp"

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr unsigned k_hang_seconds = 10;
constexpr std::size_t k_input_max = 1U << 14U;
constexpr std::size_t k_corpus_max = 20'000;

/// How often the input came by each place of the program, up to 255 times; two places may share a count.
alignas(std::uint64_t) std::array<std::uint8_t, 1U << 16U> g_visits;  // NOLINT

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
    // Seen from here, so that it is the same place in every run.
    const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) -
                       reinterpret_cast<std::uintptr_t>(&__sanitizer_cov_trace_pc);
    std::uint8_t& count = g_visits[(place ^ (place >> 16U)) % g_visits.size()];
    if (count != 255) { ++count; }
}

namespace {

/// What all inputs so far have reached.
class Reached {
public:
    /// Whether the input that was run since the last call got to a new place, or twice as often to a known one.
    bool grew() {
        bool grown = false;
        for (std::size_t i = 0; i < g_visits.size(); i += sizeof(std::uint64_t)) {
            std::uint64_t eight = 0;
            std::memcpy(&eight, &g_visits[i], sizeof eight);
            if (eight == 0) { continue; }
            for (std::size_t k = i; k < i + sizeof eight; ++k) {
                const auto magnitude = static_cast<std::uint8_t>(std::bit_width(g_visits[k]));
                places_ += magnitude != 0 && most_[k] == 0;
                grown = grown || magnitude > most_[k];
                most_[k] = std::max(most_[k], magnitude);
            }
        }
        g_visits.fill(0);
        return grown;
    }

    [[nodiscard]] std::size_t places() const { return places_; }

private:
    std::array<std::uint8_t, std::tuple_size_v<decltype(g_visits)>> most_{};
    std::size_t places_ = 0;
};

std::string g_input;       // NOLINT: what the handlers write
std::string g_crash_file;  // NOLINT

void keep_input() {
    std::FILE* file = std::fopen(g_crash_file.c_str(), "wb");
    if (file == nullptr) { return; }
    std::fwrite(g_input.data(), 1, g_input.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "the input is in %s\n", g_crash_file.c_str());
}

extern "C" void on_fuzz_signal(int number) {
    if (number == SIGALRM) { std::fprintf(stderr, "the input takes longer than %u seconds\n", k_hang_seconds); }
    keep_input();
    std::signal(number, SIG_DFL);
    std::raise(number == SIGALRM ? SIGKILL : number);
}

void run_input(const std::string& input) {
    g_input = input;
    alarm(k_hang_seconds);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(g_input.data()), g_input.size());
}

std::string read_input(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Pieces that matter to the grammars, besides what the corpus has.
const std::vector<std::string> k_pieces{"{",        "}",
                                        "[",        "]",
                                        ":",        ": ",
                                        "- ",       "#",
                                        "'",        "\"",
                                        "\\",       "\n",
                                        "\r\n",     "\t",
                                        "  ",       "&a ",
                                        "*a",       "!",
                                        "!!str ",   "|",
                                        ">",        "? ",
                                        "<<: ",     "---\n",
                                        "...\n",    "%YAML 1.1\n",
                                        ",",        "~",
                                        "0x",       "\xEF\xBB\xBF",
                                        "\xFF",     "\xC3",
                                        "\xC2\x85", "\\u0000",
                                        "\\ud800",  "1e999",
                                        "null",     "true",
                                        "-",        "$",
                                        "${",       "$$",
                                        ":-",       ":+",
                                        ":=",       "}",
                                        "/",        ".",
                                        "=",        "!=",
                                        " in (",    " notin (",
                                        ")",        "(",
                                        "^",        "+",
                                        "*",        "99999999999999999999"};

class Mutator {
public:
    explicit Mutator(std::uint64_t seed) : random_(seed) {}

    std::size_t roll(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }

    std::string mutate(const std::vector<std::string>& corpus) {
        // What came last got farthest: half of the time one of the last quarter.
        const std::size_t latest = (corpus.size() + 3) / 4;
        std::string text = corpus[roll(2) == 0 ? roll(corpus.size()) : corpus.size() - 1 - roll(latest)];
        for (auto changes = 1 + roll(5); changes > 0; --changes) { change(text, corpus[roll(corpus.size())]); }
        if (text.size() > k_input_max) { text.resize(k_input_max); }
        return text;
    }

private:
    void change(std::string& text, const std::string& other) {
        const std::size_t at = roll(text.size() + 1);
        switch (roll(8)) {
            case 0: text.insert(at, k_pieces[roll(k_pieces.size())]); break;
            case 1: text.erase(at, 1 + roll(8)); break;
            case 2: text.insert(at, 1, static_cast<char>(roll(256))); break;
            case 3: text = text.substr(0, at) + other.substr(roll(other.size() + 1)); break;
            case 4: text.insert(at, text.substr(roll(text.size() + 1), roll(40))); break;
            case 5: text.insert(at, other.substr(roll(other.size() + 1), roll(80))); break;
            case 6: {  // one piece many times: depth and length
                const std::string& piece = k_pieces[roll(k_pieces.size())];
                std::string many;
                for (std::size_t i = roll(400); i > 0; --i) { many += piece; }
                text.insert(at, many);
                break;
            }
            default: if (at < text.size()) { text[at] = static_cast<char>(roll(256)); } break;
        }
    }

    std::mt19937_64 random_;
};

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<std::string> read_corpus(const std::filesystem::path& path) {
    std::vector<std::filesystem::path> files;
    if (std::filesystem::is_directory(path)) {
        for (const auto& entry : std::filesystem::directory_iterator(path)) { files.push_back(entry.path()); }
        std::sort(files.begin(), files.end());
    } else {
        files.push_back(path);
    }
    std::vector<std::string> corpus;
    for (const auto& file : files) { corpus.push_back(read_input(file)); }
    return corpus;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2 || !std::filesystem::exists(argv[1])) {
        std::fprintf(stderr, "usage: %s CORPUS_DIR|FILE\n", argv[0]);
        return 64;
    }
    g_crash_file = "crash-" + std::filesystem::path(argv[0]).filename().string();
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) {
        std::signal(number, on_fuzz_signal);
    }
    if (__sanitizer_set_death_callback != nullptr) { __sanitizer_set_death_callback(keep_input); }

    auto corpus = read_corpus(argv[1]);
    const std::size_t given = corpus.size();
    static Reached reached;
    for (const auto& input : corpus) {
        run_input(input);
        static_cast<void>(reached.grew());
    }
    if (!std::filesystem::is_directory(argv[1])) { return 0; }
    const std::size_t known = reached.places();
    const char* keep = std::getenv("KMM_FUZZ_KEEP");
    const std::uint64_t seed = number_of("KMM_FUZZ_SEED", 1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(number_of("KMM_FUZZ_SECONDS", 20));
    Mutator mutator(seed);
    std::uint64_t runs = 0;
    for (; given != 0 && std::chrono::steady_clock::now() < end; ++runs) {
        std::string input = mutator.mutate(corpus);
        run_input(input);
        if (reached.grew() && corpus.size() < k_corpus_max) {
            if (keep != nullptr) {
                std::ofstream(std::filesystem::path(keep) / std::to_string(corpus.size()), std::ios::binary) << input;
            }
            corpus.push_back(std::move(input));
        }
    }
    std::printf(
        "%zu inputs of the corpus, %llu mutations, seed %llu; %zu of them reached more: %zu places became %zu\n", given,
        static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed), corpus.size() - given, known,
        reached.places());
    return given == 0 || runs == 0 ? 1 : 0;
}
