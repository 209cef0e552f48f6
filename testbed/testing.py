"""How tests on a cluster end: with 77, which ctest takes for skipped, where no cluster can be made; else as their tests do."""
import os
import sys
import unittest

import cluster
import volume


def main():
    try:
        cluster.check_possible()
        volume.check_possible()
    except cluster.Trouble as trouble:
        print(f"SKIP {os.path.splitext(os.path.basename(sys.argv[0]))[0]}: {trouble}")
        sys.exit(77)
    unittest.main(verbosity=2)
