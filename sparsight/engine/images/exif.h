// EXIF orientation, and the other information in a JPEG file's markers that is needed to decode pixels.
#pragma once

#include "sparsight/core/bytes.h"

namespace sparsight::engine {

struct JpegMarkers {
  int orientation = 1;  // EXIF tag 0x0112, 1 to 8; 1 if it is missing or invalid
  bool adobe = false;   // an Adobe marker: CMYK values are stored inverted
};

// Never fails: damaged markers are skipped.
JpegMarkers scan_jpeg_markers(ByteView jpeg);

// exif: a TIFF block, as in JPEG files after "Exif\0\0" and in the eXIf chunk of PNG files. Returns 1 to 8; 1 if the
// orientation is missing or invalid.
int exif_orientation(ByteView exif);

}  // namespace sparsight::engine
