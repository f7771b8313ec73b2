#include "sparsight/data/register_data.h"

#include "sparsight/data/domainbed/domainbed.h"
#include "sparsight/data/sets/celeba.h"
#include "sparsight/data/sets/cifar.h"
#include "sparsight/data/sets/cifar_noise.h"
#include "sparsight/data/sets/cifar_vehicles.h"
#include "sparsight/data/sets/colored_shapes.h"
#include "sparsight/data/sets/composite.h"
#include "sparsight/data/sets/folder.h"
#include "sparsight/data/sets/glyphs.h"
#include "sparsight/data/sets/hierarchy.h"
#include "sparsight/data/sets/manifest.h"
#include "sparsight/data/sets/mnist.h"
#include "sparsight/data/sets/npy.h"
#include "sparsight/data/sets/planted.h"
#include "sparsight/data/sets/webdataset.h"

namespace sparsight {

Registry<DataSplits, DataContext>& data_sets() {
  static auto registry = [] {
    Registry<DataSplits, DataContext> sets("dataset");
    sets.add<GlyphsOptions>("glyphs", "embedded: procedurally generated glyphs in frames, in four styles", make_glyphs);
    sets.add<MnistOptions>("mnist", "MNIST, Fashion-MNIST, KMNIST: idx files", make_mnist);
    sets.add<Cifar10Options>("cifar10", "CIFAR-10, binary version", make_cifar10);
    sets.add<Cifar100Options>("cifar100", "CIFAR-100, binary version, fine or coarse labels", make_cifar100);
    sets.add<CelebaOptions>("celeba", "CelebA in its official layout: smiling, alone, with hair or with eyeglasses",
                            make_celeba);
    sets.add<CompositeOptions>(
        "composite", "grids of MNIST digits, or of any other dataset's images, one of which determines the label",
        make_composite);
    sets.add<CifarNoiseOptions>("cifar_noise", "CIFAR-10 (or generated images) shrunk and pasted onto photographs",
                                make_cifar_noise);
    sets.add<CifarVehiclesOptions>("cifar_vehicles", "a vehicle of CIFAR-10 (or a generated image) among three animals",
                                   make_cifar_vehicles);
    sets.add<PlantedOptions>(
        "planted",
        "generated grids of glyphs, one of which determines the label, on a background that may be correlated with it",
        make_planted);
    sets.add<HierarchyOptions>(
        "hierarchy", "generated groups of classes: the group in colour and shape, the class in a fine texture",
        make_hierarchy);
    sets.add<ColoredShapesOptions>(
        "colored_shapes", "generated ellipses and squares, whose colour goes with the shape in training only (GMoE)",
        make_colored_shapes);
    sets.add<FolderOptions>("folder", "image files in class/image", make_folder);
    sets.add<DomainFolderOptions>("domain_folder", "image files in domain/class/image", make_domain_folder);
    sets.add<DomainBedOptions>("domainbed", "the datasets and splits of DomainBed, by environment", make_domainbed);
    sets.add<ManifestOptions>("manifest", "image files that a CSV file lists", make_manifest);
    sets.add<NpyOptions>("npy", "arrays in .npy files", make_npy);
    sets.add<WebDatasetOptions>("webdataset", "image files in tar shards, in a folder or on a web server",
                                make_webdataset);
    return sets;
  }();
  return registry;
}

}  // namespace sparsight
