#!/usr/bin/env python3
"""What a newcomer does first: installs, builds against the installation as README says, and runs README's ten lines as they are printed.

Usage: CAIRN_BUILD=<build folder> python3 tests/install_test.py        (cmake, pkg-config, mpicc, mpirun in PATH)
"""
import os
import re
import shlex
import subprocess
import unittest

from support import BUILD, Nodes

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEFORE = """
#include <cairn/cairn_mpi.h>
#include <stdio.h>
#include <stdlib.h>
static const uint64_t shape[2] = {10, 20}, steps = 250;
static void compute(double* u) { u[0] += 1; }
static int fail(const char* text) { return fprintf(stderr, "%s\\n", text), 1; }
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    double* u = calloc(200, sizeof(double));
"""
AFTER = """
    const int right = u[0] == (double)steps;
    free(u);
    MPI_Finalize();
    return status == CAIRN_OK ? !right : status;  /* of the last checkpoint; of the restore where none was due any more */
}
"""
# Rank 1 never opens. The others say what became of them; MPI_Abort ends it, since rank 1 would wait in MPI_Finalize for nobody.
ALONE = """
#include <cairn/cairn_mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cairn_options options = CAIRN_OPTIONS;
    options.name = "alone";
    const char* overrides[] = {"deadlines.open_ms=1 s", NULL};
    options.overrides = overrides;
    cairn_session* session = NULL;
    if (rank != 1) {
        const int code = cairn_open_mpi(MPI_COMM_WORLD, &options, &session);
        printf("rank %d: %s: %s\\n", rank, cairn_status_name(code), cairn_last_error(NULL));
        fflush(stdout);
    }
    if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 2) MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) {
        for (int from = 0; from <= 2; from += 2) MPI_Recv(&rank, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    sleep(60);
    return 0;
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(newcomer LANGUAGES C CXX)
find_package(cairn 0.1 REQUIRED COMPONENTS mpi)
add_executable(ten ten.c)
target_link_libraries(ten PRIVATE cairn::cairn_mpi)
add_executable(plain plain.cpp)
target_link_libraries(plain PRIVATE cairn::cairn)
"""
PLAIN = """
#include <cairn/cairn.hpp>
int main() { return cairn::Session::open({.name = "no/name"}).code() == CAIRN_INVALID_ARGUMENT ? 0 : 1; }
"""


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == 0, f"{shlex.join(words)} gave {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes()
        cls.addClassCleanup(cls.nodes.__exit__)
        cls.place = cls.nodes.shared
        cls.prefix = os.path.join(cls.place, "prefix")
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        with open(os.path.join(ROOT, "README.md")) as f:
            ten = re.search(r"```c\n(.*?)```", f.read(), re.S).group(1)
        for name, text in {"ten.c": BEFORE + ten + AFTER, "alone.c": ALONE, "plain.cpp": PLAIN, "CMakeLists.txt": PROJECT}.items():
            with open(os.path.join(cls.place, name), "w") as f:
                f.write(text)

    def environment(self):
        libraries = [os.path.dirname(os.path.join(folder, "libcairn.so")) for folder, _, names in os.walk(self.prefix)
                     if "libcairn.so" in names]
        self.assertEqual(len(libraries), 1)
        base = self.nodes.environment()
        del base["CAIRN_DAEMON_PROGRAM"]  # the installed library finds the installed daemon
        base.update(PKG_CONFIG_PATH=os.path.join(libraries[0], "pkgconfig"), LD_LIBRARY_PATH=libraries[0],
                    PATH=os.path.join(self.prefix, "bin") + ":" + base["PATH"],
                    OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                    OMPI_MCA_btl_vader_backing_directory=self.nodes.local, OMPI_MCA_orte_tmpdir_base=self.place)
        return base

    def runs(self, program):
        """The ten lines leave version 200; a second run, which takes no further one, restores it and ends with the same state."""
        environment = self.environment()
        for _ in range(2):
            run("mpirun", "--oversubscribe", "-n", "2", program, env=environment, cwd=self.place)
        self.assertRegex(run("cairn", "ls", "heat", "--json", env=environment), r'"version": ?200\b')
        run("cairn", "verify", "heat", env=environment)

    def test_pkg_config(self):
        environment = self.environment()
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "cairn_mpi", env=environment))
        run("mpicc", "-std=c99", "-Wall", "-Wextra", "-Werror", "ten.c", "-o", "ten", *flags, env=environment, cwd=self.place)
        self.runs(os.path.join(self.place, "ten"))

    def test_cmake(self):
        environment = self.environment()
        build = os.path.join(self.place, "build")
        run("cmake", "-S", self.place, "-B", build, "-DCMAKE_PREFIX_PATH=" + self.prefix, "-DCMAKE_CXX_STANDARD=20", env=environment)
        run("cmake", "--build", build, env=environment)
        run(os.path.join(build, "plain"), env=environment)
        self.runs(os.path.join(build, "ten"))

    def test_a_rank_that_never_calls(self):
        environment = self.environment()
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "cairn_mpi", env=environment))
        run("mpicc", "alone.c", "-o", "alone", *flags, env=environment, cwd=self.place)
        done = subprocess.run(["mpirun", "--oversubscribe", "-n", "3", "./alone"], env=environment, cwd=self.place, capture_output=True,
                              text=True, timeout=100, stdin=subprocess.DEVNULL)
        for rank in (0, 2):
            self.assertRegex(done.stdout, rf"rank {rank}: (deadline|unavailable): .*a rank", done.stderr)

    def test_manual(self):
        for page, title in (("man1/cairn.1", "\n.TH CAIRN 1"), ("man8/cairnd.8", "\n.TH CAIRND 8")):
            with open(os.path.join(self.prefix, "share", "man", page)) as f:
                self.assertIn(title, f.read())


if __name__ == "__main__":
    unittest.main(verbosity=2)
