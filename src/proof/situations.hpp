// What a seed may come by, as a table: a situation that no seed reaches is one that nothing tests, so how many did is told at the end, and one that none
// did fails the test (seeds_main.cpp). `seeds`: enough random seeds come by it. `steered`: it is too rare for that, and a line of steered_seeds.txt
// leads to it.
//
// A new situation is a row here, and `run.see(Saw::its_name)` where a step, a fault or a check meets it.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>

namespace cairn::testing {

// clang-format off
#define CAIRN_SITUATIONS(row) \
    /* how a version is written */ \
    row(old_format,         seeds, "images that an older release had left were committed") \
    row(units_cut,          seeds, "images had checksum units that ended within a block") \
    row(planned_ahead,      seeds, "a version was planned before all of it was sealed") \
    row(planned_in_vain,    seeds, "and was sealed with other sizes, or after something else had changed") \
    row(several_leaders,    seeds, "several leaders wrote one part") \
    row(packed,             seeds, "small images were packed into one run") \
    row(encoded,            seeds, "data were encoded") \
    row(merged,             seeds, "several images gave to one run by turns") \
    row(merged_moved,       seeds, "and work changed hands in that version") \
    row(merged_by_trial,    steered, "and some because trials said that it takes less") \
    row(encoded_some,       seeds, "and some of the same version were not") \
    row(encoded_before_ship, seeds, "and some before they were sent") \
    row(codec_chosen,       seeds, "and some because earlier versions were sooner so") \
    row(by_key,             seeds, "and not all kinds of data alike") \
    row(based,              seeds, "some were stored as what changed since an older version") \
    row(based_before_ship,  seeds, "and some of them before they were sent") \
    row(equal_pages,        seeds, "what several images had in common was stored once") \
    row(equal_encoded,      seeds, "and some of it was encoded") \
    row(equal_moved,        seeds, "and work changed hands in that version") \
    row(once_committed,     seeds, "images that could be read once only were committed") \
    row(once_used_up,       seeds, "and some were used up by an attempt that failed") \
    row(asked_committed,    seeds, "images that their ranks gave when asked were committed") \
    row(asked_again,        seeds, "and some of their bytes were given twice") \
    row(asked_left,         seeds, "and some were lost, since their rank left in mid-flush") \
    row(io_node_led,        seeds, "an I/O node led") \
    row(small_io,           seeds, "I/O nodes had buffers smaller than a block") \
    row(work_moved,         seeds, "work changed hands") \
    row(on_targets,         seeds, "parts were placed on targets") \
    row(targets_differ,     seeds, "targets of different speed") \
    row(target_gone,        seeds, "a target was gone") \
    row(on_roots,           seeds, "parts lay below several roots") \
    row(persistent_too,     seeds, "and some of them below persistent") \
    row(left_out_failing,   seeds, "and none below one that failed") \
    row(left_out_full,      seeds, "that had no room") \
    row(left_out_away,      seeds, "that was away") \
    row(left_out_hanging,   seeds, "that hung") \
    row(replaced,           seeds, "a part was written again, elsewhere, since its storage failed in mid-flush") \
    row(replaced_hung,      seeds, "and some below a root that hung") \
    row(replaced_moved,     seeds, "and work had changed hands in that version") \
    row(replaced_again,     steered, "and some a second time") \
    row(replaced_file,      seeds, "and some were a rank's or node's file") \
    row(read_away,          seeds, "a version was asked for while a root of it was away") \
    row(removed_away,       steered, "one was removed while a root of it was away, and its tombstone stayed") \
    row(paced,              seeds, "a flush gave way to the application") \
    row(attempt_failed,     seeds, "an attempt failed") \
    row(forgotten,          seeds, "a daemon forgot a version that had ended") \
    row(job_forgotten,      seeds, "a daemon forgot a job that had ended") \
    /* the job */ \
    row(several_jobs,       seeds, "a job came after another") \
    row(went_back,          seeds, "a job went back to an older version") \
    row(other_coordinator,  seeds, "another node became the job's first") \
    row(spare_node,         seeds, "the ranks of a node that was gone ran on a new one") \
    row(ranks_together,     seeds, "or on another of the job's") \
    row(from_scratch,       seeds, "a job went on from a version that only scratch held") \
    row(parent_lost,        steered, "and all scratch was lost before that was committed") \
    row(rivals,             seeds, "two jobs opened at the same time") \
    row(died_at_open,       seeds, "a job died between its open and its restore") \
    row(parent_undurable,   seeds, "a job died while it named its parent") \
    row(taken_again,        seeds, "a rank took a version again, with other bytes") \
    row(alone,              seeds, "no rank lived any more at the end") \
    row(alone_committed,    seeds, "and daemons that were started again committed what was sealed") \
    row(cancelled,          seeds, "a version was to be cancelled") \
    row(cancelled_in_time,  seeds, "a version was cancelled") \
    row(cancel_at_commit,   seeds, "one was to be cancelled while it was published") \
    /* the operator, and scratch that wants room */ \
    row(removed,            seeds, "a version was removed") \
    row(dependent_published, seeds, "a version that has parts of an older one was published") \
    row(base_stayed,        seeds, "an older one stayed because of it") \
    row(base_gone,          seeds, "one was not published, since the older one was removed") \
    row(dependent_removed,  seeds, "one was removed") \
    row(given_up,           seeds, "a version was to be given up by hand") \
    row(gc_in_time,         seeds, "a version was given up by hand") \
    row(gc_at_commit,       seeds, "one was to be given up while it was published") \
    row(not_given_up,       seeds, "one that was to be cancelled or given up was committed, or nobody knows") \
    row(let_go,             seeds, "images left scratch") \
    row(single_let_go,      seeds, "single ranks' images left scratch") \
    row(image_in_use,       steered, "an image of a version that had ended was in use, and stayed") \
    row(image_under_way,    seeds, "an image that was being flushed stayed") \
    row(dead_freed,         seeds, "a dead image was freed") \
    row(orphan_freed,       seeds, "one was freed whose coordinator was gone for good") \
    row(slot_reused,        seeds, "a slot held another image at once") \
    row(let_go_late,        seeds, "an image left scratch while its slot could still be written to") \
    /* restore while storage is in trouble */ \
    row(restored_in_trouble, seeds, "a restore was right though storage was in trouble") \
    row(restore_failed,     seeds, "a restore failed, storage being in trouble") \
    row(passed_over,        seeds, "a restore told which version it passed over") \
    row(shared_in_trouble,  seeds, "ranks of a node had runs from each other, storage being in trouble") \
    row(shared,             seeds, "ranks of a node had runs from each other") \
    row(shared_base,        steered, "and some of them were of an older version that theirs was stored as what changed since") \
    row(shared_late,        seeds, "and one read by itself what another did not come to the end of") \
    row(shared_killed,      seeds, "and one of them was killed meanwhile") \
    row(shared_damage,      seeds, "damage in a run that they share was told by each of them") \
    /* what goes wrong by itself */ \
    row(read_failed,        seeds, "a read failed") \
    row(write_failed,       seeds, "a write failed") \
    row(names_failed,       seeds, "an operation on names failed") \
    row(denied,             seeds, "one took effect, and said that it failed") \
    row(commit_denied,      seeds, "a publication took effect, and said that it failed") \
    row(storage_full,       seeds, "storage was full") \
    row(fsync_failed,       seeds, "an fsync failed") \
    row(io_hung,            seeds, "storage did not answer") \
    row(stale_read,         seeds, "a read gave what stood there before") \
    row(other_read,         seeds, "a read gave another page") \
    row(payload_damaged,    seeds, "data were damaged on their way") \
    row(payload_lost,       seeds, "data were lost on their way") \
    row(twin_opened,        seeds, "two nodes had two files of one name") \
    row(resize_lost,        seeds, "a file was not resized, and nobody told") \
    row(growth_lost,        seeds, "of two nodes that made a file grow one lost its bytes") \
    row(published_by_rename, seeds, "publishing took the first name away") \
    row(room_untrue,        seeds, "a look at a file system's room found none though there was") \
    row(wall_set,           seeds, "a wall clock was set") \
    /* daemons that end, and ranks that wait */ \
    row(stopped,            seeds, "a daemon ended in order") \
    row(stopped_in_flush,   seeds, "one left a version to the next") \
    row(succeeded,          seeds, "a second daemon took over from one that stood still") \
    row(former_woke,        seeds, "and the first one went on") \
    row(waited_sealed,      seeds, "a rank waited until a version was sealed") \
    row(waited_committed,   seeds, "a rank waited until a version was committed") \
    row(waited_meanwhile,   seeds, "a rank that waited was told whatever went wrong meanwhile") \
    row(waited_without_end, seeds, "and one that had no deadline") \
    row(wait_timed_out,     seeds, "a rank waited in vain") \
    row(wait_failed,        seeds, "a rank that waited was told of a failure") \
    /* what goes wrong */ \
    row(daemon_killed,      seeds, "a daemon was killed") \
    row(coordinator_killed, seeds, "the coordinator's daemon was killed") \
    row(paused,             seeds, "a daemon stood still") \
    row(partitioned,        seeds, "nodes were cut off") \
    row(node_crashed,       seeds, "a node crashed") \
    row(node_gone,          seeds, "a node was gone for good") \
    row(coordinator_gone,   seeds, "the coordinator's node was gone for good") \
    row(covered,            seeds, "persistent was another tree") \
    row(power_lost,         seeds, "all nodes lost power at once") \
    row(record_flipped,     seeds, "a bit turned in a record of the lineage") \
    row(restart_refused,    seeds, "a restart was refused for want of a record") \
    row(parent_forgotten,   seeds, "a repair forgot what nothing else told") \
    row(struck,             seeds, "a fault struck a chosen operation") \
    row(buffers_lost,       seeds, "storage never gave back any of a daemon's buffers") \
    row(scratch_hung,       seeds, "scratch never gave back what was read") \
    row(clocks_apart,       seeds, "clocks were apart") \
    row(file_per_rank,      seeds, "each rank's image lay in a file of its own") \
    row(file_per_node,      seeds, "each node's images lay in a file of their own") \
    row(tensors,            seeds, "parts were safetensors files") \
    row(tensors_of_several, seeds, "and one of them had the tensors of several ranks") \
    row(replaced_tensors,   steered, "another safetensors file took the place of one whose storage failed in mid-flush") \
    row(only_messages,      seeds, "only messages suffered") \
    row(only_limits,        seeds, "only limits held flushes back") \
    row(many_versions,      seeds, "a job took more versions than are remembered")
// clang-format on

#define CAIRN_SITUATION_NAME(name, by, text) name,
enum class Saw : std::size_t { CAIRN_SITUATIONS(CAIRN_SITUATION_NAME) };
#undef CAIRN_SITUATION_NAME

enum class ReachedBy : std::uint8_t { seeds, steered };

struct Situation {
    const char* name;
    ReachedBy by;
    const char* text;
};

#define CAIRN_SITUATION_ROW(name, by, text) Situation{#name, ReachedBy::by, text},
inline constexpr std::array situations = {CAIRN_SITUATIONS(CAIRN_SITUATION_ROW)};
#undef CAIRN_SITUATION_ROW

using SawSet = std::bitset<situations.size()>;

}  // namespace cairn::testing
