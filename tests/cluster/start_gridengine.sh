#!/usr/bin/env bash
# A Grid Engine of one node, for tests: start_gridengine.sh FOLDER starts it there, start_gridengine.sh --stop FOLDER
# stops it. Needs root and Debian's packages gridengine-master, gridengine-exec and gridengine-client.
# Afterwards: source FOLDER/environment
set -euo pipefail

stop() {
    local name pid
    for name in execd/localhost/execd qmaster/qmaster; do
        pid=$1/spool/$name.pid
        if [ -s "$pid" ]; then kill "$(cat "$pid")" 2>/dev/null || true; fi
    done
}

if [ "$1" = --stop ]; then stop "$2"; exit 0; fi

folder=$1
host=localhost
user=$(id -un)
shared=/usr/share/gridengine
mkdir -p "$folder"/{default/common,spool/{qmaster/job_scripts,spooldb,execd}}
ln -s $shared/util "$folder/util"
for name in bin lib utilbin; do ln -s /var/lib/gridengine/$name "$folder/$name"; done
cat >"$folder/environment" <<END
export SGE_ROOT=$folder SGE_CELL=default SGE_ARCH=$($shared/util/arch)
export SGE_QMASTER_PORT=${SGE_QMASTER_PORT:-16444} SGE_EXECD_PORT=${SGE_EXECD_PORT:-16445}
END
source "$folder/environment"
echo localhost >"$folder/default/common/act_qmaster"
# The address 127.0.0.1 and this host's own name mean one host.
echo "localhost $(hostname) $(hostname -f)" >"$folder/default/common/host_aliases"
sed -e "s|^admin_user .*|admin_user $user|" -e "s|/var/spool/gridengine|$folder/spool|" \
    $shared/default-bootstrap >"$folder/default/common/bootstrap"
sed -e "s|/var/spool/gridengine/execd|$folder/spool/execd|" -e 's/^min_\([ug]\)id .*/min_\1id 0/' \
    -e 's|^mailer .*|mailer /bin/true|' -e 's/^load_report_time .*/load_report_time 00:00:02/' \
    $shared/default-configuration >"$folder/configuration"
lib=/usr/lib/gridengine
$lib/spoolinit berkeleydb libspoolb "$folder/spool/spooldb" init
$lib/spooldefaults configuration "$folder/configuration"
$lib/spooldefaults complexes $shared/util/resources/centry
$lib/spooldefaults usersets $shared/util/resources/usersets
$lib/spooldefaults managers "$user"
sge_qmaster
for _ in $(seq 50); do qconf -sh >/dev/null 2>&1 && break; sleep 0.2; done
qconf -ah $host >/dev/null 2>&1 || true
qconf -as $host >/dev/null
sge_execd
for _ in $(seq 100); do qhost -h $host 2>/dev/null | grep -Eq "^$host .*[0-9][MG] " && break; sleep 0.2; done
cat >"$folder/queue" <<END
qname main.q
hostlist $host
slots 2
shell_start_mode posix_compliant
notify 00:00:05
tmpdir /tmp
rerun TRUE
pe_list NONE
load_thresholds NONE
END
# What is not named keeps the value of Grid Engine's own template.
qconf -sq >"$folder/template"
while read -r key _; do sed -i "/^$key /d" "$folder/template"; done <"$folder/queue"
cat "$folder/template" >>"$folder/queue"
qconf -Aq "$folder/queue"
# A look at the queue each second, and whenever a job comes or goes.
qconf -ssconf | sed -E 's/^(schedule_interval +).*/\10:0:1/; s/^(flush_(submit|finish)_sec +).*/\11/' >"$folder/scheduler"
qconf -Msconf "$folder/scheduler"
for _ in $(seq 100); do
    if qstat -f | grep -q '^main.q@localhost .*lx-[a-z0-9]* *$'; then exit 0; fi
    sleep 0.2
done
echo "the queue did not become ready:" >&2
qstat -f >&2 || true
tail -n 20 "$folder"/spool/qmaster/messages "$folder"/spool/execd/*/messages >&2
exit 1
