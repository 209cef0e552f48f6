// Config: docs/settings.md from the table of keys.
#include "base/config.hpp"

namespace cairn {

namespace {

// A value as one writes it in cairn.toml.
std::string toml_literal(const ConfigKey& key, const ConfigValue& value) {
    const std::string text = key.format(value);
    switch (key.kind) {
        case ConfigKind::number:
        case ConfigKind::fraction:
        case ConfigKind::flag:
            return text;
        default:
            return std::string(1, '"').append(text).append(1, '"');
    }
}

}  // namespace

std::string config_markdown() {
    std::string page =
        "# Settings\n\n"
        "<!-- Made by `cairn config --markdown` from src/base/config_keys.cpp; do not edit. -->\n\n"
        "Cairn reads the first of these files that exists: `$CAIRN_CONFIG` (which must exist; empty: no file), "
        "`./cairn.toml`,\n"
        "`$HOME/.config/cairn/cairn.toml`, `/etc/cairn.toml`. Each key can be overridden by the environment variable\n"
        "`CAIRN_SECTION_KEY`, for example `CAIRN_FLUSH_FILES=4`. An unknown key or a bad value is an error that names "
        "file, line, key\n"
        "and what is allowed. `cairn config` prints every key, its value and where it came from.\n\n"
        "Sizes are plain numbers of bytes or texts such as `\"64 MiB\"`; times are plain numbers in the unit that ends "
        "the key's\n"
        "name (`_ms`, `_s`) or texts such as `\"500 ms\"`, `\"30 s\"`, `\"5 min\"`.\n\n"
        "Three variables are not settings: `CAIRN_CONFIG` (the file), `CAIRN_NODE` (the name of a virtual node, so "
        "that one host\n"
        "can play several) and `CAIRN_JOB` (the name of the job, where the launcher gives none).\n\n"
        "A daemon reads its settings once, when it starts, and outlives the program by `daemon.idle_s`: `[placement]`, `[background]`, "
        "`[network]`, `[describe]` and\n"
        "`flush.leaders`, `slots`, `writers`, `buffers`, `buffer_bytes`, `placement`, `direct`, `io`, `memory_share`, `attempts_max`, `local_split`, `codec`, `encode_at`, `full_every`, `merge_ranks`, `merge_bytes` and `equal_pages` are its own. To change one for the "
        "next run, `cairn stop` first. "
        "`paths`,\n"
        "`flush.layout`, `files`, `block_bytes` and `io_nodes` are read by the program when it opens the job.\n";
    const Settings presets;
    for (const ConfigSection& section : config_sections()) {
        page += "\n## [" + std::string(section.name) + "]\n\n" + std::string(section.doc) + "\n\n";
        page += "| key | default | allowed | what it does |\n|---|---|---|---|\n";
        for (const ConfigKey& key : config_keys())
            if (key.section == section.name)
                page += "| `" + std::string(key.name) + "` | `" + toml_literal(key, key.get(presets)) + "` | " +
                        key.allowed() + " | " + std::string(key.doc) + " |\n";
    }
    return page;
}

}  // namespace cairn
