/* Cairn's C interface: asynchronous multi-level checkpointing.
 *
 * A session is one open of one named series of checkpoints by all ranks of a job. The application protects what it
 * wants kept, calls cairn_checkpoint now and then, and goes on computing after little more than a memory copy; a daemon
 * on each node turns the images of all ranks into K files on shared storage meanwhile. After a restart, cairn_restore
 * brings the newest whole version back.
 *
 *     cairn_options options = CAIRN_OPTIONS;
 *     options.name = "heat";
 *     cairn_session* session;
 *     if (cairn_open(&options, &session) != CAIRN_OK) { fprintf(stderr, "%s\n", cairn_last_error(NULL)); exit(1); }
 *     cairn_protect(session, "u", u, CAIRN_F64, 2, shape);
 *     uint64_t step = 0;
 *     int status = cairn_restore(session, CAIRN_NEWEST, &step);       // CAIRN_NOT_FOUND: a fresh start
 *     while (step < steps) { compute(u); ++step; if (step % 100 == 0) status = cairn_checkpoint(session, step); }
 *     cairn_wait(session, step, CAIRN_COMMITTED, 60000);
 *     cairn_close(session);
 *
 * What every call keeps:
 *  - It returns a status: CAIRN_OK (0) or one of the codes below. The text of a failure, for the person who must act,
 *    is cairn_last_error(session). The library never exits, aborts, prints or installs a signal handler, and leaves
 *    no thread running.
 *  - Collective calls (cairn_open, cairn_newest, cairn_newest_not_above, cairn_list, cairn_restore,
 *    cairn_restore_regions, cairn_close) are made by all ranks of the session in the same order; all ranks return the
 *    same status. A rank that never calls makes the others return CAIRN_DEADLINE or CAIRN_UNAVAILABLE after
 *    deadlines.open_ms (deadlines.restore_ms in a restore), naming it where the way of exchange can tell. All other
 *    calls are local to the rank and never wait for another rank.
 *  - Threads: different sessions are independent. On one session, calls from several threads are safe and run one
 *    after the other, but for cairn_wait, cairn_test and cairn_cancel, which run beside any other call: a helper
 *    thread may wait for a flush while another checkpoints. cairn_close comes last: no other call may be under way or
 *    follow (one that does gives CAIRN_INVALID_ARGUMENT). Protected memory must not change while cairn_checkpoint
 *    runs. With MPI, collective calls need what MPI_Init_thread promised.
 *  - fork: the child must not use the session; its calls return CAIRN_INVALID_ARGUMENT, and cairn_close only frees
 *    memory there.
 *  - Strings are UTF-8 and copied; NULL where a handle or a string is required gives CAIRN_INVALID_ARGUMENT.
 */
#ifndef CAIRN_CAIRN_H
#define CAIRN_CAIRN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CAIRN_API __attribute__((visibility("default")))
#else
#define CAIRN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Status of a call. Values never change; new ones are appended. */
enum {
    CAIRN_OK = 0,
    CAIRN_INVALID_ARGUMENT = 1, /* the caller asked for something that can not be */
    CAIRN_NOT_FOUND = 2,        /* no such name, version, region or file */
    CAIRN_ALREADY_EXISTS = 3,   /* protected twice, or published by somebody else */
    CAIRN_OUT_OF_SPACE = 4,     /* scratch or persistent is full */
    CAIRN_IO_ERROR = 5,         /* the operating system refused an operation */
    CAIRN_CORRUPT = 6,          /* bytes are not what their checksum says, or not Cairn's format */
    CAIRN_UNAVAILABLE = 7,      /* a daemon or a rank can not be reached, or was lost */
    CAIRN_DEADLINE = 8,         /* the time allowed ran out; the operation may still finish */
    CAIRN_SUPERSEDED = 9,       /* a newer open of the same name, or going back, replaced this one */
    CAIRN_CANCELLED = 10,       /* cairn_cancel, or a callback of the application that refused */
    CAIRN_PERMISSION = 11,      /* belongs to another user */
    CAIRN_UNSUPPORTED = 12,     /* another version of the format or of the daemon */
    CAIRN_INTERNAL = 13         /* a defect in Cairn */
};

/* Type of the elements of a region. Kept with the data and compared at restore; also decides how compressors may treat
 * it. */
enum {
    CAIRN_BYTES = 0,
    CAIRN_I8 = 1,
    CAIRN_U8 = 2,
    CAIRN_I16 = 3,
    CAIRN_U16 = 4,
    CAIRN_I32 = 5,
    CAIRN_U32 = 6,
    CAIRN_I64 = 7,
    CAIRN_U64 = 8,
    CAIRN_F16 = 9,
    CAIRN_BF16 = 10,
    CAIRN_F32 = 11,
    CAIRN_F64 = 12,
    CAIRN_C64 = 13, /* two F32 */
    CAIRN_C128 = 14, /* two F64 */
    CAIRN_BIG_ENDIAN = 256 /* no type: for cairn_describe alone, beside one, CAIRN_F64 | CAIRN_BIG_ENDIAN */
};

/* How far a version is. */
enum {
    CAIRN_CAPTURED = 1, /* this rank's image is sealed in its node's scratch: survives the death of the process */
    CAIRN_SEALED = 2,   /* so are the images of all ranks: restorable while the nodes' scratch lives */
    CAIRN_COMMITTED = 3 /* durable under the persistent directory */
};

#define CAIRN_NEWEST UINT64_MAX     /* as a version asked for: the newest that is whole */
#define CAIRN_NAME_BYTES_MAX 128    /* of a series, node or job name */
#define CAIRN_REGION_BYTES_MAX 512  /* of a region's name */
#define CAIRN_DIMENSIONS_MAX 32     /* of a region's shape */
#define CAIRN_DESCRIPTIONS_MAX 1000 /* arrays of a region that cairn_describe says */
#define CAIRN_TO_END UINT64_MAX     /* as an extent, for cairn_describe alone: as many as the region has */

typedef struct cairn_session cairn_session;

/* How to open. Start from CAIRN_OPTIONS; what is left at zero takes its default. */
typedef struct cairn_options {
    size_t struct_bytes; /* sizeof(cairn_options); set by CAIRN_OPTIONS, so that the struct can grow */
    /* Of the series: 1 to 128 of A-Z a-z 0-9 . _ - and no leading '.'; not NULL. All ranks give the same. */
    const char* name;
    /* This process is `rank` of `ranks`. ranks 0 means 1. With MPI both come from the communicator and stay 0 here. */
    uint32_t rank;
    uint32_t ranks;
    /* Needed when ranks > 1 without MPI: a text that all processes of this run share and no other job in the same
     * persistent directory uses at the same time (a batch job's number, say). Same rules as for `name`. They find each
     * other through <persistent>/.cairn/rendezvous/<job>. NULL: the environment variable CAIRN_JOB. */
    const char* job;
    /* Name of this node; several on one host are virtual nodes with a daemon each. NULL: the environment variable
     * CAIRN_NODE, else the host's name up to its first dot. */
    const char* node;
    /* A cairn.toml. NULL: where `cairn config` says. An unreadable one is an error. */
    const char* config_file;
    /* Settings that win over file and environment, each "section.key=value"; ends with NULL; NULL for none. */
    const char* const* overrides;
} cairn_options;
#define CAIRN_OPTIONS \
    { sizeof(cairn_options), NULL, 0, 0, NULL, NULL, NULL, NULL }

/* ---- opening and closing ---- */

/* Collective. Reads the settings, starts this node's daemon where none runs, agrees with the other ranks, and raises
 * the series' epoch: an older session of the same name can commit nothing after this. Restores nothing by itself. On
 * success *session is to be closed with cairn_close; on failure it is NULL and cairn_last_error(NULL) has the text.
 * Errors: INVALID_ARGUMENT (name, rank, setting, files outside 1..ranks, ranks that disagree), NOT_FOUND / PERMISSION /
 * IO_ERROR (scratch or persistent), UNAVAILABLE (no daemon), UNSUPPORTED (daemon of another version), DEADLINE (a rank
 * never called). */
CAIRN_API int cairn_open(const cairn_options* options, cairn_session** session);

/* How ranks talk to each other at collective calls when they have their own means; cairn_open_mpi is made with this.
 * Both functions are collective, return 0 or else fail the call (so does a C++ exception), and should give up after
 * timeout_ms. */
typedef struct cairn_exchange {
    size_t struct_bytes; /* sizeof(cairn_exchange) */
    void* context;
    /* Every rank gives `bytes` bytes at `send` and gets those of all ranks, in rank order, at `receive` (ranks x
     * bytes). */
    int (*allgather)(void* context, const void* send, void* receive, uint64_t bytes, uint64_t timeout_ms);
    /* `bytes` bytes at `buffer` of rank 0 appear at `buffer` of every rank. */
    int (*broadcast)(void* context, void* buffer, uint64_t bytes, uint64_t timeout_ms);
    /* Called once when the session is gone, also when cairn_open_exchange fails; may be NULL. */
    void (*release)(void* context);
} cairn_exchange;

/* Like cairn_open for options->rank of options->ranks, with the caller's own exchange; options->job is not needed. */
CAIRN_API int cairn_open_exchange(const cairn_options* options, const cairn_exchange* exchange,
                                  cairn_session** session);

/* Collective. Ends the session and frees it, whatever it returns. Does not wait for flushes: the daemons go on with
 * what was captured (where they die with the job: cairn_wait comes first, or the job script waits, docs/jobs.md).
 * Without MPI a rank that comes when others have given up waiting for it (DEADLINE) does not wait for them.
 * cairn_close(NULL) is CAIRN_OK. In a callback of the session it is refused, and frees nothing. */
CAIRN_API int cairn_close(cairn_session* session);

/* ---- what is kept ---- */

/* A region's name: 1 to 512 bytes of UTF-8 without control characters; components may be separated by '/', none of them
 * empty, "." or "..".
 *
 * Protects memory: `ndim` (1 to 32) extents in `shape`, row-major, contiguous, of elements of `type`, at `data`. The
 * memory stays the application's; it is read by cairn_checkpoint and written by cairn_restore, and must stay mapped
 * until cairn_unprotect. Memory that is not mapped at a checkpoint is an error that names the region; memory that was
 * freed but is still mapped can not be told from good memory. Errors: ALREADY_EXISTS (name taken), INVALID_ARGUMENT
 * (name, NULL data, type, ndim, a zero or overflowing shape). */
CAIRN_API int cairn_protect(cairn_session* session, const char* region, void* data, int type, uint32_t ndim,
                            const uint64_t* shape);

/* Protects memory that is this rank's block of an array that all ranks have together: `global_shape` is the array's, and
 * `global_offset` where the block begins in it, in elements; both have `ndim` entries, and the block lies within the
 * array. Cairn keeps and restores the block as cairn_protect does, and keeps the two beside it: `cairn show` tells them, and
 * readers of the files can put the array together. A block that is restored must be the one that was kept. Errors as
 * cairn_protect. */
CAIRN_API int cairn_protect_block(cairn_session* session, const char* region, void* data, int type, uint32_t ndim,
                                  const uint64_t* shape, const uint64_t* global_shape, const uint64_t* global_offset);

/* Each returns 0, or anything else to refuse: the call under way then returns CAIRN_CANCELLED. A C++ exception refuses,
 * too, and cairn_last_error has its text. At a checkpoint they may be called a second time: the image is captured again
 * when this node's daemon was started again meanwhile. They must not call Cairn: with this session that is
 * CAIRN_INVALID_ARGUMENT. */
typedef int (*cairn_size_function)(void* context, uint64_t* bytes); /* how many bytes serialise will write */
typedef int (*cairn_serialise_function)(void* context, void* into, uint64_t bytes); /* writes all of them */
typedef int (*cairn_deserialise_function)(void* context, const void* from,
                                          uint64_t bytes); /* at restore; verified bytes */

/* Protects what is not plain memory: at each checkpoint `size`, then `serialise` straight into scratch; at restore
 * `deserialise`. Zero bytes are fine. `context` is handed back as it is. Errors as cairn_protect. */
CAIRN_API int cairn_protect_callbacks(cairn_session* session, const char* region, cairn_size_function size,
                                      cairn_serialise_function serialise, cairn_deserialise_function deserialise,
                                      void* context);

/* Protects a file that the application writes itself: what `path` holds at a checkpoint is copied and becomes
 * the region; at restore it is written back to `path`, whole or not at all. `path` is made absolute now. To route another path next time, unprotect and route again. A missing file at a
 * checkpoint is NOT_FOUND. */
CAIRN_API int cairn_route_file(cairn_session* session, const char* region, const char* path);

/* Says of a region that Cairn can not see into (a routed file, what callbacks write, memory of CAIRN_BYTES) that an
 * array lies in it: from byte `offset` on, `ndim` (1 to 32) extents in `shape`, row-major, contiguous, of elements of
 * `type`, with | CAIRN_BIG_ENDIAN where their bytes lie so. One of the extents may be CAIRN_TO_END. Called once for each
 * array, at most CAIRN_DESCRIPTIONS_MAX times a region; it holds until cairn_unprotect. `name` is the array's, with
 * groups before it ("Grid/Density"; at most 255 bytes), or NULL: arrays of the same name of several ranks and files are
 * taken for alike.
 *
 * Codecs predict numbers along the axes that they are told (flush.codec); bytes that nothing describes they take on a
 * sample. What is said here goes before the rules of describe.rules, and before what a file says of itself. All bytes
 * come back the same whatever is said: a wrong description costs room. Of an array that goes beyond the end of the
 * region at a checkpoint only what is there is described. Errors: NOT_FOUND (no such region), INVALID_ARGUMENT (a region
 * whose type says it already; type, ndim, name, a zero or overflowing shape; bytes of which another array is described;
 * too many). */
CAIRN_API int cairn_describe(cairn_session* session, const char* region, uint64_t offset, int type, uint32_t ndim,
                             const uint64_t* shape, const char* name);

/* Forgets a region and what was said of it; later versions are without it. NOT_FOUND when there is none of that name. */
CAIRN_API int cairn_unprotect(cairn_session* session, const char* region);

/* ---- checkpoints ---- */

/* Local. Copies all protected regions into scratch as this rank's image of `version` and returns; the rest happens in
 * the background. Versions are 1 or more and increase from one checkpoint to the next (and above the one restored); all
 * ranks take the same versions. When scratch is full it waits up to capture.wait_ms (capture.when_full = wait), or
 * replaces the oldest that may go. It stays no longer either where the daemon gives no sign of life for a second (a
 * process that was stopped). Errors: INVALID_ARGUMENT (version not increasing; unmapped memory), OUT_OF_SPACE,
 * SUPERSEDED (somebody opened the same name after us), UNAVAILABLE (daemon died and could not be started again),
 * CANCELLED (a callback refused), NOT_FOUND (routed file). After an error nothing of this version is kept for this
 * rank, and the same version may be tried again. Only DEADLINE leaves it open: a daemon that did not answer may have
 * the image after all, and trying again then gives ALREADY_EXISTS: take a higher version.
 *
 * With capture.mode = through nothing is copied: the call returns when the version is committed, which takes all ranks, or with an
 * error on all of them (IO_ERROR and whatever else a flush can fail with; CANCELLED or SUPERSEDED where another rank gave up or
 * died; DEADLINE where other ranks did not come within capture.wait_ms; UNSUPPORTED with a callback region). The version is lost
 * then, the older ones stand; take a higher one. Routed files must not change before it returns. */
CAIRN_API int cairn_checkpoint(cairn_session* session, uint64_t version);

/* Local. Ends with OK when `version` has reached `level`, or with the reason when a try failed (at once when it is known
 * and this session was not told of it yet). The flush is tried again in the background as long as its images are in
 * scratch: a wait after that waits for what becomes of the next try, and ends with the old reason only after timeout_ms.
 * Else DEADLINE after timeout_ms, which a daemon that does not answer makes no longer.
 * NOT_FOUND: not a version of this session. */
CAIRN_API int cairn_wait(cairn_session* session, uint64_t version, int level, uint64_t timeout_ms);

/* Local. cairn_wait with no time: OK reached, DEADLINE not yet (as far as the daemon says so at once), else why it
 * failed, each time. Never blocks: a poll does not stand for longer than 20 ms. */
CAIRN_API int cairn_test(cairn_session* session, uint64_t version, int level);

/* Local, one rank is enough. Gives a version of this session up: its flush stops on all nodes. ALREADY_EXISTS when it
 * committed first. */
CAIRN_API int cairn_cancel(cairn_session* session, uint64_t version);

/* ---- going back ---- */

/* Collective. The newest version that every rank can restore from some level. NOT_FOUND when there is none. */
CAIRN_API int cairn_newest(cairn_session* session, uint64_t* version);

/* Collective. The same, not above `limit`. */
CAIRN_API int cairn_newest_not_above(cairn_session* session, uint64_t limit, uint64_t* version);

typedef struct cairn_version_info {
    uint64_t version;
    uint64_t bytes; /* of all ranks' images, with what tells their regions */
    uint32_t ranks;
    int level; /* CAIRN_COMMITTED, or CAIRN_SEALED when only in scratch */
} cairn_version_info;

/* Collective. All restorable versions, oldest first: up to `capacity` of the newest into `array` (may be NULL when
 * capacity is 0), how many there are into *count. */
CAIRN_API int cairn_list(cairn_session* session, cairn_version_info* array, size_t capacity, size_t* count);

/* Local. Bytes of this rank's `region` in `version`, to allocate before a restore. `version` is one that an earlier
 * collective call of this session named (cairn_newest, cairn_newest_not_above, cairn_list, cairn_restore), or
 * CAIRN_NEWEST for the newest of those. NOT_FOUND names what is missing. */
CAIRN_API int cairn_region_bytes(cairn_session* session, uint64_t version, const char* region, uint64_t* bytes);

/* What a version holds for this rank. */
typedef struct cairn_region_info {
    char name[CAIRN_REGION_BYTES_MAX + 1];
    int type;
    uint32_t ndim;
    uint64_t shape[CAIRN_DIMENSIONS_MAX];
    uint64_t bytes;
} cairn_region_info;

/* Local. Regions of this rank in `version` (as for cairn_region_bytes), in the order of protection: up to `capacity`
 * into `array`, how many there are into *count. */
CAIRN_API int cairn_regions(cairn_session* session, uint64_t version, cairn_region_info* array, size_t capacity,
                            size_t* count);

/* Collective. Brings all protected regions back from `version`, verified, and names it in *restored (may be NULL).
 * Later checkpoints continue from it: versions above it are no part of the series any more. CAIRN_NEWEST takes the
 * newest that every rank can get, and falls back to the next older one while one is damaged; cairn_warnings then says
 * which and why. A version asked for by number is that or an error. Regions of the version that are not protected are
 * left out. Errors: NOT_FOUND (no such version, or a protected region that it lacks), INVALID_ARGUMENT (a region of
 * another type, shape or size, another number of ranks), CORRUPT (what and where), PERMISSION (the newest may not be
 * read, and may be whole: ask for an older one by its number), CANCELLED (a callback refused).
 * After an error protected memory is unchanged or partly written: restore again or start afresh. */
CAIRN_API int cairn_restore(cairn_session* session, uint64_t version, uint64_t* restored);

/* Collective. The same for `count` named regions only; each must be protected. Ranks may name different ones. */
CAIRN_API int cairn_restore_regions(cairn_session* session, uint64_t version, const char* const* regions, size_t count,
                                    uint64_t* restored);

/* ---- texts ---- */

/* The text of the last failure on this session; "" when none. NULL: the last failure on this thread of a call without a
 * session, above all of a failed open. Valid until this thread's next call of this function. */
CAIRN_API const char* cairn_last_error(const cairn_session* session);

/* What the last cairn_open or cairn_restore on this session wants a person to know although it succeeded, one a line;
 * "" when nothing. Valid until this thread's next call of this function. */
CAIRN_API const char* cairn_warnings(const cairn_session* session);

/* "ok", "invalid_argument", ...; "unknown" for what is no status. */
CAIRN_API const char* cairn_status_name(int status);

/* "0.1.0" */
CAIRN_API const char* cairn_library_version(void);

#ifdef __cplusplus
}
#endif

#endif
