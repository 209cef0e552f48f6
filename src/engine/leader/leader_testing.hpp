// The leader alone, for its tests: it leads an attempt on node 1, and the test is the coordinator.
#pragma once

#include "engine/leader/leader.hpp"
#include "engine/role_testing.hpp"
#include "format/part.hpp"
#include "model/coverage.hpp"

namespace cairn::testing {

// Node 1 of three leads; node 0 coordinates.
struct LeaderAlone : ::testing::Test {
    static constexpr std::uint64_t blocks = 40, image_bytes = (blocks - 1) * role_block + 100;
    static constexpr Id128 attempt_id{7, 5};

    static RoleOptions options() {
        RoleOptions options;
        options.self = 1;
        options.settings.writers = 2;
        return options;
    }
    // Storage takes a block in 40 ms: most of the image is not begun for a while.
    static RoleOptions slow() {
        RoleOptions options = LeaderAlone::options();
        options.settings.writers = 1;
        options.model.persistent_client_rate = 1e5;
        return options;
    }
    // Of one part that only it writes, with so much of its own image.
    static message::Lead lead_of(std::uint64_t bytes, std::uint64_t range_bytes) {
        message::Lead lead = role_lead(attempt_id);
        lead.parts = {{0, "", 0, {{1, 0, range_bytes, {{1, {{1, 0, bytes}}}}}}}};
        lead.images = {role_image(1, image_bytes)};
        return lead;
    }
    static message::Lead whole() { return lead_of(image_bytes, blocks * role_block); }

    void hear(message::ForLeader body) {
        node->note_heard(0);
        node->subject.hear(node->flight, 0, std::move(body));
    }
    void begin(const RoleOptions& options, message::Lead lead) {
        node = std::make_unique<Alone<engine::Leader>>(options);
        node->add_image(1, image_bytes);
        hear(std::move(lead));
    }
    void complete() { hear(message::Complete{attempt_id, {}}); }
    std::string path() const { return node->layout.part(node->flight->key, 0, 1, attempt_id); }
    Footer footer_of(const Bytes& file) {
        const std::uint64_t tail = file.size() - std::min<std::uint64_t>(file.size(), part_trailer_bytes);
        const Result<FooterPlace> place = decode_trailer(ByteView(file).subspan(tail), file.size());
        EXPECT_TRUE(place.ok()) << place.status().to_string();
        if (!place.ok()) return {};
        Result<Footer> footer = decode_footer(ByteView(file).subspan(place->offset, place->length), *place);
        EXPECT_TRUE(footer.ok()) << footer.status().to_string();
        return footer.ok() ? std::move(footer).value() : Footer();
    }
    // Every piece's bytes are where the footer says, and are what it says: so many bytes in all.
    std::uint64_t check_bytes(const Bytes& file, const Footer& footer) {
        const Bytes image = role_bytes(1, image_bytes);
        std::uint64_t sum = 0;
        for (const StoredRun& run : footer.runs)
            for (const StoredPiece& piece : run.pieces) {
                EXPECT_TRUE(bytes_in(file, run.part_offset + piece.at, piece.length) == bytes_in(image, piece.image_offset, piece.length));
                EXPECT_EQ(piece.checksums, block_checksums(bytes_in(image, piece.image_offset, piece.length)));
                EXPECT_EQ(run.part_offset % part_alignment, 0u);
                sum += piece.length;
            }
        return sum;
    }

    std::unique_ptr<Alone<engine::Leader>> node;
};

}  // namespace cairn::testing
