loop_sources(
  data/data_info_json.cpp
  data/data_set.cpp
  data/imagenet_labels.cpp
  data/known_superclasses.cpp
  data/label_sets.cpp
  data/loader.cpp
  data/one_compute_thread.cpp
  data/register_data.cpp
  data/sampler.cpp
  data/training_loaders.cpp
  data/sets/colored_shapes.cpp
  data/sets/glyph_canvas.cpp
  data/sets/glyph_painter.cpp
  data/sets/glyph_shapes.cpp
  data/sets/glyphs.cpp
  data/sets/hierarchy.cpp
  data/sets/hierarchy_painter.cpp
  data/sets/hierarchy_textures.cpp
  data/transforms/affine.cpp
  data/transforms/batch_transform.cpp
  data/transforms/color.cpp
  data/transforms/corrupt.cpp
  data/transforms/crop.cpp
  data/transforms/enhance.cpp
  data/transforms/erase.cpp
  data/transforms/fit_to_data.cpp
  data/transforms/flip.cpp
  data/transforms/hue.cpp
  data/transforms/increasing_augmentations.cpp
  data/transforms/levels.cpp
  data/transforms/normalize.cpp
  data/transforms/pipeline.cpp
  data/transforms/rand_augment.cpp
  data/transforms/register_transforms.cpp
  data/transforms/resize.cpp
  data/transforms/to_float.cpp
  data/transforms/torchvision_augmentations.cpp
  data/transforms/transform_options.cpp
  data/transforms/warp.cpp)

# Without trapping, loops with a choice between two numbers run in vectors.
set_source_files_properties(data/transforms/affine.cpp data/transforms/enhance.cpp data/transforms/hue.cpp
  TARGET_DIRECTORY sparsight_loops
  PROPERTIES COMPILE_OPTIONS -fno-trapping-math)

# The corruptions of ImageNet-C.
loop_sources(
  data/corruptions/blur.cpp
  data/corruptions/corruptions.cpp
  data/corruptions/digital.cpp
  data/corruptions/noise.cpp
  data/corruptions/picture.cpp
  data/corruptions/weather.cpp)

# Readers, decorators, the sets of files and what looks at, checks, writes and fetches them.
loop_sources(
  data/check_images.cpp
  data/class_folders.cpp
  data/download.cpp
  data/export_images.cpp
  data/fetch.cpp
  data/fingerprint.cpp
  data/hash.cpp
  data/libcurl.cpp
  data/locate.cpp
  data/look_at_all.cpp
  data/places.cpp
  data/remote_sets.cpp
  data/shared_images.cpp
  data/summary.cpp
  data/untar.cpp
  data/verify.cpp
  data/decorators/concat.cpp
  data/domainbed/domain_sets.cpp
  data/domainbed/domainbed.cpp
  data/domainbed/mnist_domains.cpp
  data/domainbed/numpy_random.cpp
  data/domainbed/published_domains.cpp
  data/domainbed/seed_hash.cpp
  data/decorators/stratified.cpp
  data/decorators/subset.cpp
  data/readers/bytes.cpp
  data/readers/celeba.cpp
  data/readers/cifar.cpp
  data/readers/csv.cpp
  data/readers/folder.cpp
  data/readers/idx.cpp
  data/readers/image.cpp
  data/readers/jpeg_write.cpp
  data/readers/manifest.cpp
  data/readers/npy.cpp
  data/readers/npy_write.cpp
  data/readers/png_write.cpp
  data/sets/array_set.cpp
  data/sets/backgrounds.cpp
  data/sets/celeba.cpp
  data/sets/cifar.cpp
  data/sets/cifar_names.cpp
  data/sets/cifar_noise.cpp
  data/sets/cifar_vehicles.cpp
  data/sets/class_pictures.cpp
  data/sets/composite.cpp
  data/sets/composite_cells.cpp
  data/sets/data_root.cpp
  data/sets/folder.cpp
  data/sets/image_files.cpp
  data/sets/manifest.cpp
  data/sets/mnist.cpp
  data/sets/npy.cpp
  data/sets/planted.cpp
  data/sets/splits.cpp)

# Datasets of domain generalisation with text files of their own.
loop_sources(
  data/domainbed/cub_dg.cpp
  data/domainbed/wilds.cpp
  data/readers/cub.cpp)

# Tar shards, in files and on web servers.
loop_sources(
  data/http_request.cpp
  data/sets/webdataset.cpp
  data/shards/block_cache.cpp
  data/shards/http_reader.cpp
  data/shards/index_file.cpp
  data/shards/index_shard.cpp
  data/shards/shard_labels.cpp
  data/shards/shard_names.cpp
  data/shards/shard_set.cpp
  data/shards/shard_store.cpp
  data/shards/tar_header.cpp
  data/shards/tar_members.cpp
  data/shards/write_shards.cpp)
