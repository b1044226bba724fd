#!/bin/bash
# Sums of the parts of a data set, one task of a job array for each file; then PCA of all of them.
#   sbatch --array=0-$(($(ls rows-*.npy | wc -l) - 1)) --wait examples/slurm/partial.sh
#   sigmapca train model=pca_svd k=10 data=moments "data.path='part-*.h5'"
# For solver=moments run it again with AXES='part-*.h5' in the environment: it then writes fourth-*.h5, and
#   sigmapca train solver=moments k=10 data=moments "data.path='fourth-*.h5'"
#SBATCH --job-name=sigmapca-partial
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
#SBATCH --output=slurm-%A-%a.log

files=(rows-*.npy)
file=${files[$SLURM_ARRAY_TASK_ID]}
if [ -z "$AXES" ]; then
    sigmapca partial "$file" -o "part-$SLURM_ARRAY_TASK_ID.h5"
else
    sigmapca partial "$file" --axes "$AXES" -k 10 -o "fourth-$SLURM_ARRAY_TASK_ID.h5"
fi
