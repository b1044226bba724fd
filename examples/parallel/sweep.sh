#!/bin/bash
# A sweep over the cores of one machine with GNU parallel, one `sigmapca train` a job:   bash examples/parallel/sweep.sh
# Ctrl-C or SIGTERM stops all jobs after they have saved. The same command again repeats nothing that is finished.
read -ra more <<<"${SIGMAPCA_ARGUMENTS:-}"
exec parallel --jobs "${JOBS:-2}" --line-buffer --tag --termseq TERM,120000,KILL,25 --joblog parallel.log \
    sigmapca train model=nlpca a={} "${more[@]}" threads=1 --run-dir outputs/parallel-sweep/a-{} --if-exists resume \
    ::: 1 2 4 8 16 32
