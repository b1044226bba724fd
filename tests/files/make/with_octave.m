% octave with_octave.m FOLDER: a matrix with the names of its columns, as Octave writes it for MATLAB, and as text.
folder = argv(){1};
X = (0:7)' * 1.5 + (0:2) * 0.25 - 4;
names = {"height", "weight", "age"};
rate = 250;
save("-v7", fullfile(folder, "octave-7.mat"), "X", "names", "rate");
save("-v6", fullfile(folder, "octave-6.mat"), "X");
dlmwrite(fullfile(folder, "octave.txt"), X, "delimiter", "\t");
