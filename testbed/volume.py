"""The cluster's parallel file system: one distributed GlusterFS volume over all servers, mounted at /mnt/pfs on all compute nodes.

A file lives whole on one server, which GlusterFS chooses from its name. It can be chosen: a file made as NAME@gv-dht:gv-client-K lies on server
K and is called NAME from then on (`placed`).
"""
import os

from cluster import Trouble, wait_for

VOLUME = "gv"
MOUNT = "/mnt/pfs"
BRICK = "/mnt/local/brick/b"
MOUNT_WITHIN_S = 20
PEERS_WITHIN_S = 60


def placed(name, server):
    """The name under which a file is made on that server (0, 1, ...)."""
    return f"{name}@{VOLUME}-dht:{VOLUME}-client-{server}"


def check_possible():
    if not os.path.exists("/usr/sbin/glusterd"):
        raise Trouble("missing packages: glusterfs-server (scripts/setup testbed installs it)")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        raise Trouble(f"/dev/fuse can not be opened ({error.strerror}), and GlusterFS is mounted through it; in a container: docker run --privileged") from None


def _start_server(cluster, server):
    # Logs and state of each in its own /mnt/local: nothing is written into the host's directories, which all nodes see.
    cluster.run(server, "sh", "-ec", """
        cd /mnt/local; mkdir -p glusterd log brick /run/gluster
        mount --bind glusterd /var/lib/glusterd
        mount --bind log /var/log/glusterfs
        glusterd -p /run/glusterd.pid </dev/null >/dev/null 2>&1""")


def create(cluster, ping_timeout_s=42, options=None):
    """Makes the volume and mounts it on every compute node; further volume options as {"performance.x": "on"}."""
    check_possible()
    servers = cluster.servers
    if not servers:
        raise Trouble("a parallel file system needs servers: bring the cluster up with some")
    for server in servers:
        _start_server(cluster, server)

    def gluster(*words):
        return cluster.run("s0", "gluster", "--mode=script", *words)

    def works(*words):
        try:
            return gluster(*words) or True
        except Trouble:
            return False

    for server in servers[1:]:
        wait_for(f"{server} in the pool of servers", lambda: works("peer", "probe", server), PEERS_WITHIN_S)
    connected = "Peer in Cluster (Connected)"
    wait_for("all servers in the pool", lambda: gluster("peer", "status").count(connected) == len(servers) - 1, PEERS_WITHIN_S)
    bricks = [f"{server}:{BRICK}" for server in servers]
    wait_for("the volume", lambda: works("volume", "create", VOLUME, "transport", "tcp", *bricks, "force"), PEERS_WITHIN_S)
    settings = {"performance.client-io-threads": "on", "network.ping-timeout": ping_timeout_s, **(options or {})}
    for key, value in settings.items():
        gluster("volume", "set", VOLUME, key, str(value))
    gluster("volume", "start", VOLUME)
    for node in cluster.compute:
        mount(cluster, node)


def mount(cluster, node):
    """On one node, connected to every server. Trouble when it is not there at the end: writes would go to the host's disk."""
    cluster.run(node, "sh", "-ec", f"""
        mkdir -p {MOUNT} /mnt/local/log /run/gluster
        mountpoint -q /var/log/glusterfs || mount -t tmpfs tmpfs /var/log/glusterfs
        glusterfs --volfile-server=s0 --volfile-id={VOLUME} --log-file=/mnt/local/log/pfs.log {MOUNT} </dev/null >/dev/null 2>&1""")
    wait_for(f"{MOUNT} on {node}", lambda: is_mounted(cluster, node), MOUNT_WITHIN_S)
    wait_for(f"connections to all servers on {node}", lambda: connected(cluster, node) == len(cluster.servers), MOUNT_WITHIN_S)


def connected(cluster, node):
    """To how many servers a node's mount is. The rest are away for it: it calls their files missing, broken or invalid."""
    said = cluster.run(node, "sh", "-c", f"cat {MOUNT}/.meta/graphs/active/{VOLUME}-client-*/private 2>/dev/null || true")
    return said.count("connected = 1")


def boot(cluster, node):
    """After a crash: the server serves what its disk has, the compute node has the file system again."""
    cluster.boot(node)
    if node in cluster.servers:
        cluster.run(node, "sh", "-c", "rm -f /run/gluster*.pid /run/gluster/*.socket; glusterd -p /run/glusterd.pid </dev/null >/dev/null 2>&1")
    else:
        cluster.run(node, "umount", "--lazy", MOUNT)
        # The servers may still hold connections from before the crash, and refuse one from the same port once.
        wait_for(f"{MOUNT} on {node} again", lambda: _mounted(cluster, node), MOUNT_WITHIN_S)


def _mounted(cluster, node):
    try:
        mount(cluster, node)
        return True
    except Trouble:
        return False


def remount(cluster, node):
    """The node's client begins anew: nothing that was read or written through it is in memory any more. No file may be open."""
    cluster.run(node, "umount", MOUNT)
    mount(cluster, node)


def is_mounted(cluster, node):
    try:
        with open(f"/proc/{cluster.node(node).pid}/mounts") as f:
            return f" {MOUNT} fuse.glusterfs" in f.read()
    except OSError:
        return False


def server_of(cluster, node, path):
    """On which server a file of the volume lies: "s2"."""
    ask = "import os, sys; sys.stdout.write(os.getxattr(sys.argv[1], 'trusted.glusterfs.pathinfo').decode())"
    text = cluster.run(node, "python3", "-c", ask, path)
    at = text.rfind(":" + BRICK)
    return text[:at].rsplit(":", 1)[-1].rsplit("(", 1)[-1] if at >= 0 else None
