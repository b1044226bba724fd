"""Limits of memory and cores, as the kernel and SLURM write them."""

import os

import pytest

from sigmapca_cli.system import limits

GB = 1 << 30


@pytest.fixture
def machine(tmp_path):
    """A function that writes files below a root: path to text; 64 GB are free."""

    def write(**files):
        files = {
            "proc/meminfo": f"MemAvailable: {64 * GB // 1024} kB\n",
            "proc/self/statm": "9999 256 1",
        } | files
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


def test_the_machine_alone(machine):
    assert limits.memory_left(machine(), {}) == 64 * GB


@pytest.mark.parametrize("inside", ["job", ""], ids=["path", "container"])
def test_version_two_counts_the_narrowest_group_around(machine, inside):
    root = machine(**{
        "proc/self/cgroup": "0::/outer/job\n",
        f"sys/fs/cgroup/{'outer/' + inside if inside else ''}/memory.max": "max\n",
        f"sys/fs/cgroup/{'outer' if inside else ''}/memory.max": f"{8 * GB}\n",
        f"sys/fs/cgroup/{'outer' if inside else ''}/memory.current": f"{3 * GB}\n",
        f"sys/fs/cgroup/{'outer' if inside else ''}/memory.stat": f"anon 5\ninactive_file {GB}\n",
    })  # fmt: skip
    assert limits.memory_left(root, {}) == 6 * GB


def test_version_one(machine):
    group = "sys/fs/cgroup/memory/slurm/job_7"
    root = machine(**{
        "proc/self/cgroup": "4:memory:/slurm/job_7\n2:cpu,cpuacct:/slurm/job_7\n0::/\n",
        f"{group}/memory.limit_in_bytes": f"{4 * GB}",
        f"{group}/memory.usage_in_bytes": f"{GB}",
        f"{group}/memory.stat": "",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1",
        "sys/fs/cgroup/cpu,cpuacct/slurm/job_7/cpu.cfs_quota_us": "100000",
        "sys/fs/cgroup/cpu,cpuacct/slurm/job_7/cpu.cfs_period_us": "100000",
    })  # fmt: skip
    assert limits.memory_left(root, {}) == 3 * GB
    assert limits.cores(root) == 1


def test_slurm(machine):
    root, resident = machine(), 256 * os.sysconf("SC_PAGESIZE")
    assert limits.memory_left(root, {"SLURM_MEM_PER_NODE": "2048"}) == 2 * GB - resident
    per_cpu = {"SLURM_MEM_PER_CPU": "1024", "SLURM_CPUS_ON_NODE": "3"}
    assert limits.memory_left(root, per_cpu) == 3 * GB - resident
    assert limits.memory_left(root, {"SLURM_MEM_PER_NODE": "0"}) == 64 * GB


@pytest.mark.parametrize(
    "text, expected", [("max 100000", 4), ("250000 100000", 2), ("20000 100000", 1), ("", 4)]
)
def test_the_quota_of_cores(machine, monkeypatch, text, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    root = machine(**{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": text})
    assert limits.cores(root) == expected


def test_nothing_is_known(tmp_path):
    assert limits.memory_left(tmp_path, {}) == float("inf")
    assert limits.cores(tmp_path) >= 1
