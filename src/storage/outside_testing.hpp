// A machine that is not there: what drivers ask of it is kept, and answered as recorded.
#pragma once

#include <map>

#include "storage/outside.hpp"

namespace cairn::testing {

struct RecordedOutside final : Outside {
    std::map<std::string, Result<std::string>> answers;  // to a command, its words with blanks between; else there is no such program
    std::map<std::string, std::string> attributes;       // PATH NAME
    std::map<std::string, Status> refused;               // NAME of an attribute that may not be set
    std::map<std::string, void*> functions;
    std::vector<std::string> asked;

    static std::string text_of(const Words& words) {
        std::string text;
        for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
        return text;
    }
    Result<std::string> run(const Words& words, Nanos) override {
        asked.push_back(text_of(words));
        const auto found = answers.find(asked.back());
        if (found == answers.end()) return Status(Code::unsupported, "there is no program " + words[0] + " here that this user may run");
        return found->second;
    }
    Result<std::string> attribute(const std::string& path, const std::string& name) override {
        const auto found = attributes.find(path + " " + name);
        if (found == attributes.end()) return unavailable("no such attribute");
        return found->second;
    }
    Status set_attribute(const std::string& path, const std::string& name, const std::string& value) override {
        asked.push_back("set " + path + " " + name + " " + value);
        const auto found = refused.find(name);
        return found == refused.end() ? Status() : found->second;
    }
    Status make_file(const std::string& path, std::uint32_t) override {
        asked.push_back("make " + path);
        return {};
    }
    Result<std::uint64_t> block_bytes(const std::string&) override { return std::uint64_t{4096}; }
    void* function(const char* library, const char* name) override {
        const auto found = functions.find(std::string(library) + " " + name);
        return found == functions.end() ? nullptr : found->second;
    }
};

}  // namespace cairn::testing
