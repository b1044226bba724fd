# Rscript with_r.R FOLDER: tables as R writes them, with the names of rows that it adds.
folder <- commandArgs(trailingOnly = TRUE)[1]
values <- outer(0:7, 0:2, function(i, j) i * 1.5 + j * 0.25 - 4)
frame <- data.frame("height" = values[, 1], "body weight" = values[, 2], "age" = values[, 3], check.names = FALSE)
write.table(frame, file.path(folder, "r-table.txt"))
write.csv(frame, file.path(folder, "r.csv"))
write.csv2(frame, file.path(folder, "r-german.csv"), row.names = FALSE)
frame[3, 2] <- NA
write.csv(frame, file.path(folder, "r-missing.csv"), row.names = FALSE)
