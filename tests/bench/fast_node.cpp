// SPDX-License-Identifier: Apache-2.0
// Plays ssh and a node that answers at once, for tests/bench/fleet_bench.py. $FLEET_NODES/NODE holds the build that is
// loaded; absent: none. The build of an image is made of its reference.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>

namespace {

std::string build_of(const std::string& image) {
    char text[25];
    std::snprintf(text, sizeof text, "%016zX%08X", std::hash<std::string>()(image), 0x1234U);
    return text;
}

}  // namespace

int main(int argc, char** argv) {
    int at = 1;
    while (at < argc && std::string(argv[at]) != "--") ++at;
    if (at + 2 >= argc) return 255;
    const std::string node = argv[at + 1], command = argv[at + 2];
    const char* place = std::getenv("FLEET_NODES");
    const auto file = std::string(place != nullptr ? place : ".") + "/" + node;
    std::string verb = "status", image, live;
    for (const char* known : {"unload", "check", "load"})
        if (command.find("'" + std::string(known) + "'") != std::string::npos) verb = known;
    std::cerr << "kmm-worker-started\n";
    if (verb != "status") {
        const std::string config((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
        const std::string key = "containerImage: ";
        const auto from = config.find(key) + key.size();
        image = config.substr(from, config.find('\n', from) - from);
        std::erase(image, '"');
    }
    std::getline(std::ifstream(file), live);
    const auto about = R"("apiVersion":"kmmtools/v1","node":{"name":")" + node +
                       R"(","kernel":"6.1.0-56-amd64","bootID":"boot-)" + node + R"(","architecture":"amd64"})";
    if (verb == "status") {
        const auto state = live.empty() ? std::string(R"("absent")") : R"("live","srcversion":")" + live + "\"";
        std::cout << "{" << about << R"(,"kind":"ModuleStatus","modules":[{"name":"kmm_hello","state":)" << state
                  << "}]}\n";
        return 0;
    }
    if (verb == "load") std::ofstream(file) << build_of(image) << "\n";
    if (verb == "unload") ::unlink(file.c_str());
    const std::string outcome = verb == "check" ? "passed" : verb + "ed";
    std::cout << "{" << about << R"(,"kind":"WorkerResult","verb":")" << verb << R"(","outcome":")" << outcome
              << R"(","image":{"reference":")" << image << R"(","digest":"sha256:)" << build_of(image)
              << R"("},"modules":[{"name":"kmm_hello","main":true,"srcversion":")" << build_of(image) << "\"}]}\n";
    return 0;
}
