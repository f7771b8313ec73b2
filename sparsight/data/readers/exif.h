// How a picture is to be turned upright, and what else pixels need to know from a JPEG file's markers.
#pragma once

#include "sparsight/data/readers/bytes.h"

namespace sparsight {

struct JpegMarkers {
  int orientation = 1;  // EXIF tag 0x0112, 1 to 8; 1 where it is absent or nonsense
  bool adobe = false;   // an Adobe marker: CMYK values are stored inverted
};

// Never fails: what is damaged is passed over.
JpegMarkers scan_jpeg_markers(ByteView jpeg);

// exif: a TIFF block, as JPEG files hold it behind "Exif\0\0" and PNG files in their eXIf chunk. Returns 1 to 8; 1
// where the orientation is absent or nonsense.
int exif_orientation(ByteView exif);

}  // namespace sparsight
