# sh with_gdal.sh FOLDER: a height model as GDAL writes it, with a value for no data.
cat > "$1/gdal.asc" <<'GRID'
ncols 4
nrows 3
xllcorner 0
yllcorner 0
cellsize 10
NODATA_value -9999
1.5 2.25 3 4
5.5 -9999 7.25 8
9 10.5 11 12.75
GRID
gdal_translate -q -of GTiff -ot Float32 "$1/gdal.asc" "$1/gdal.tif"
rm "$1/gdal.asc"
