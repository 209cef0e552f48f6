/* Heat on a plate, kept by Cairn through its C interface.
 *
 *     mpirun -n 4 heat [--steps 1000] [--every 100] [--rows 512] [--columns 512] [--pause-ms 0] [--name heat]
 *
 * Each rank owns a band of rows of a plate that is hot along its upper edge; every step each point becomes the mean of
 * its neighbours. Every `every` steps all ranks checkpoint. Kill it whenever you like and start it again: it goes on
 * from the newest checkpoint, and its last line, a checksum of every bit of the plate, is the one that an undisturbed
 * run prints.
 */
#include <cairn/cairn_mpi.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    uint64_t steps, every, rows, columns, pause_ms;
    const char* name;
} arguments;

static int parse(int argc, char** argv, arguments* a) {
    *a = (arguments){1000, 100, 512, 512, 0, "heat"};
    for (int i = 1; i + 1 < argc; i += 2) {
        const uint64_t number = strtoull(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--steps"))
            a->steps = number;
        else if (!strcmp(argv[i], "--every"))
            a->every = number;
        else if (!strcmp(argv[i], "--rows"))
            a->rows = number;
        else if (!strcmp(argv[i], "--columns"))
            a->columns = number;
        else if (!strcmp(argv[i], "--pause-ms"))
            a->pause_ms = number;
        else if (!strcmp(argv[i], "--name"))
            a->name = argv[i + 1];
        else
            return 0;
    }
    return argc % 2 == 1 && a->every > 0 && a->columns > 2;
}

static void fail(int rank, const char* what, const char* text) {
    fprintf(stderr, "heat: rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* One step: `u` (rows + 2 bands of columns, the outer two are the neighbours') into `next`. */
static void step(double* u, double* next, uint64_t rows, uint64_t columns, int rank, int ranks) {
    const int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    const int n = (int)columns;
    MPI_Sendrecv(u + columns, n, MPI_DOUBLE, up, 0, u + (rows + 1) * columns, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(u + rows * columns, n, MPI_DOUBLE, down, 1, u, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (uint64_t r = 1; r <= rows; ++r)
        for (uint64_t c = 1; c + 1 < columns; ++c) {
            const double* at = u + r * columns + c;
            next[r * columns + c] = 0.25 * (at[-1] + at[1] + at[-(int64_t)columns] + at[columns]);
        }
    for (uint64_t r = 1; r <= rows; ++r)
        memcpy(u + r * columns + 1, next + r * columns + 1, (columns - 2) * sizeof(double));
}

/* FNV-1a over all ranks' rows in order: the same only when every bit is. */
static uint64_t checksum(const double* u, uint64_t rows, uint64_t columns, int rank, int ranks) {
    uint64_t hash = 14695981039346656037u;
    const int from = rank > 0 ? rank - 1 : MPI_PROC_NULL, to = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    MPI_Recv(&hash, 1, MPI_UINT64_T, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const unsigned char* bytes = (const unsigned char*)(u + columns);
    for (uint64_t i = 0; i < rows * columns * sizeof(double); ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
    MPI_Send(&hash, 1, MPI_UINT64_T, to, 2, MPI_COMM_WORLD);
    MPI_Bcast(&hash, 1, MPI_UINT64_T, ranks - 1, MPI_COMM_WORLD);
    return hash;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    arguments a;
    if (!parse(argc, argv, &a))
        fail(rank, "usage", "heat [--steps N] [--every N] [--rows N] [--columns N] [--pause-ms N] [--name NAME]");

    const uint64_t rows = a.rows / (uint64_t)ranks + ((uint64_t)rank < a.rows % (uint64_t)ranks);
    double* u = calloc((rows + 2) * a.columns, sizeof(double));
    double* next = calloc((rows + 2) * a.columns, sizeof(double));
    if (!u || !next) fail(rank, "memory", "not enough");
    if (rank == 0)
        for (uint64_t c = 0; c < a.columns; ++c)
            u[c] = 100.0; /* the edge above row 1: rank 0 has no neighbour that overwrites it */

    cairn_options options = CAIRN_OPTIONS;
    options.name = a.name;
    cairn_session* session;
    if (cairn_open_mpi(MPI_COMM_WORLD, &options, &session) != CAIRN_OK) fail(rank, "open", cairn_last_error(NULL));
    const uint64_t shape[2] = {rows + 2, a.columns};
    if (cairn_protect(session, "plate", u, CAIRN_F64, 2, shape) != CAIRN_OK)
        fail(rank, "protect", cairn_last_error(session));

    uint64_t at = 0;
    const int restored = cairn_restore(session, CAIRN_NEWEST, &at);
    if (restored != CAIRN_OK && restored != CAIRN_NOT_FOUND) fail(rank, "restore", cairn_last_error(session));
    if (rank == 0) {
        fputs(cairn_warnings(session), stderr);
        printf("heat: %s step %" PRIu64 "\n", restored == CAIRN_OK ? "goes on after" : "starts at", at);
        fflush(stdout);
    }

    double waited_s = 0;
    uint64_t newest = 0;
    while (at < a.steps) {
        step(u, next, rows, a.columns, rank, ranks);
        ++at;
        if (a.pause_ms)
            nanosleep(&(struct timespec){(time_t)(a.pause_ms / 1000), (long)(a.pause_ms % 1000) * 1000000}, NULL);
        if (at % a.every != 0) continue;
        const double begin = MPI_Wtime();
        /* A checkpoint that fails is told, and the computation goes on: the one before it still stands. */
        if (cairn_checkpoint(session, at) == CAIRN_OK)
            newest = at;
        else
            fprintf(stderr, "heat: rank %d: checkpoint %" PRIu64 ": %s\n", rank, at, cairn_last_error(session));
        waited_s += MPI_Wtime() - begin;
    }

    const uint64_t sum = checksum(u, rows, a.columns, rank, ranks);
    if (newest != 0 && cairn_wait(session, newest, CAIRN_COMMITTED, 60000) != CAIRN_OK)
        fprintf(stderr, "heat: rank %d: version %" PRIu64 " is not committed: %s\n", rank, newest,
                cairn_last_error(session));
    if (rank == 0)
        printf("heat: %d ranks waited %.3f s for checkpoints\nheat: step %" PRIu64 " checksum %016" PRIx64 "\n", ranks,
               waited_s, at, sum);
    cairn_close(session);
    free(u);
    free(next);
    MPI_Finalize();
    return 0;
}
