#!/bin/bash
# Sums of the parts of a data set, one task of a job array for each file; then PCA of all of them.
#   sbatch --array=0-$(($(ls rows-*.npy | wc -l) - 1)) --wait examples/slurm/partial.sh
#   sigmapca train model=pca_svd k=10 data=moments "data.path='part-*.h5'"
#SBATCH --job-name=sigmapca-partial
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
#SBATCH --output=slurm-%A-%a.log

files=(rows-*.npy)
file=${files[$SLURM_ARRAY_TASK_ID]}
sigmapca partial "$file" -o "part-$SLURM_ARRAY_TASK_ID.h5"
