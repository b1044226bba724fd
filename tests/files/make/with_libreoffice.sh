# sh with_libreoffice.sh FOLDER: a table from a CSV file through LibreOffice's spreadsheet to CSV, as its users save it.
printf 'height,weight,share\n-4,-3.75,5%%\n-2.5,-2.25,6%%\n-1,-0.75,12.5%%\n0.5,0.75,7%%\n' > "$1/sheet.csv"
soffice --headless --convert-to ods --outdir "$1" "$1/sheet.csv" >/dev/null 2>&1
rm "$1/sheet.csv"
soffice --headless --convert-to csv --outdir "$1" "$1/sheet.ods" >/dev/null 2>&1
mv "$1/sheet.csv" "$1/libreoffice.csv"
mv "$1/sheet.ods" "$1/libreoffice.ods"
