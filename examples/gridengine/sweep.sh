#!/bin/bash
# A sweep as a Grid Engine job array, one `sigmapca train` a task:   qsub examples/gridengine/sweep.sh
# Before its limit (s_rt) a task gets SIGUSR1, saves, and ends with 99, which queues it again.
#$ -N sigmapca
#$ -t 1-6
#$ -cwd -V -r y -j y
#$ -S /bin/bash
#$ -l s_rt=03:58:00,h_rt=04:00:00
# Its shell is a login shell, which may set PATH anew: the environment from which this was submitted comes first again.
PATH=${VIRTUAL_ENV:-${CONDA_PREFIX:-/usr}}/bin:$PATH
scales=(1 2 4 8 16 32)
a=${scales[$SGE_TASK_ID - 1]}
read -ra more <<<"${SIGMAPCA_ARGUMENTS:-}"
# In the background: bash looks at signals only between two commands, and while it waits.
sigmapca train model=nlpca a="$a" "${more[@]}" --run-dir "outputs/gridengine-sweep/a-$a" --if-exists resume &
run=$!
trap 'kill -USR1 $run' USR1 XCPU
trap 'kill -TERM $run' TERM
status=255
while kill -0 $run 2>/dev/null; do
    wait $run
    status=$?
done
[ "$status" = 75 ] && exit 99   # 75: stopped, and resumable; 99 is Grid Engine's word for "again"
exit "$status"
