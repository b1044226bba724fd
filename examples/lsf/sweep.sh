#!/bin/bash
# A sweep as an LSF job array, one `sigmapca train` a task:   bsub < examples/lsf/sweep.sh
# Ten minutes before its limit (-wt) a task gets SIGUSR2, saves, and ends with 75, which queues it again (-Q).
#BSUB -J "sigmapca[1-6]"
#BSUB -n 2
#BSUB -W 4:00
#BSUB -wa USR2
#BSUB -wt 10
#BSUB -r
#BSUB -Q "75"
#BSUB -o lsf-%J_%I.log
scales=(1 2 4 8 16 32)
a=${scales[$LSB_JOBINDEX - 1]}
read -ra more <<<"${SIGMAPCA_ARGUMENTS:-}"
exec sigmapca train model=nlpca a="$a" "${more[@]}" --run-dir "outputs/lsf-sweep/a-$a" --if-exists resume
