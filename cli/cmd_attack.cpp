#include "cli/cmd_attack.h"

#include <limits>
#include <memory>

#include "cli/catalogue.h"
#include "cli/model_arguments.h"
#include "cli/verbs.h"

namespace sparsight::cli {
namespace {

constexpr int64_t kMaxImages = 1'000'000'000;

// A class that is not given means none or all, which is not what an empty text says.
std::string refuse_no_class(const std::string& text) { return text.empty() ? "the text names no class" : ""; }

void add_threat_options(CLI::App& verb, AttackRequest& request) {
  verb.add_option("--attack", request.attack, "autoattack, or one attack: " + component_names("attack"))
      ->capture_default_str()
      ->type_name("NAME");
  verb.add_option("--norm", request.norm, "Norm of the perturbations")
      ->check(CLI::IsMember({"linf", "l2", "l1"}))
      ->capture_default_str();
  verb.add_option("--eps", request.epsilon,
                  "Radius of the perturbations, a number or a fraction, in units of --range; several, separated by "
                  "commas, give a curve")
      ->capture_default_str()
      ->type_name("EPS");
  verb.add_option("--range", request.range, "Range of the pixels that --eps refers to")
      ->check(CLI::IsMember({"0..1", "-1..1", "0..255"}))
      ->capture_default_str();
  verb.add_option("--target", request.target,
                  "Move images to a class, by name or number, or to least_likely or random, a wrong class of each "
                  "(setting attack.target)")
      ->check(refuse_no_class)
      ->type_name("CLASS");
}

void add_image_options(CLI::App& verb, AttackRequest& request) {
  verb.add_option("--split", request.split, "Split of the dataset: train, val or test")
      ->check(CLI::IsMember({"train", "val", "test"}))
      ->capture_default_str();
  verb.add_option("--data", request.data, "Folder of the dataset (setting data.root)")->type_name("FOLDER");
  verb.add_option("--only-classes", request.only_classes,
                  "Attack only images of these classes: names or numbers, separated by commas")
      ->check(refuse_no_class)
      ->type_name("CLASSES");
  verb.add_option("--images", request.images, "Attack only N images, drawn evenly over the classes")
      ->check(CLI::Range(int64_t{1}, kMaxImages))
      ->type_name("N");
}

void add_pass_options(CLI::App& verb, AttackRequest& request) {
  verb.add_option("--batch", request.batch, "Images attacked together (default: as many as memory allows)")
      ->check(CLI::Range(int64_t{1}, kMaxImages))
      ->type_name("N");
  verb.add_option("--seed", request.seed, "Seed of the attack's random numbers")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->capture_default_str()
      ->type_name("N");
  verb.add_option("--precision", request.precision, "Precision of the model and the attack: fp32 or fp64")
      ->check(CLI::IsMember({"fp32", "fp64"}))
      ->capture_default_str();
  verb.add_flag("--noise", request.noise, "Use training-time router noise");
  verb.add_flag("--exact", request.exact,
                "Run each image through the model alone: slower, the same bits for every --batch");
}

}  // namespace

void add_attack(CLI::App& app) {
  const auto arguments = std::make_shared<AttackArguments>();
  AttackRequest& request = arguments->request;
  CLI::App* verb = add_verb(app, "attack", "Attack a trained model with adversarial images: robust accuracy",
                            "sparsight attack runs/demo --eps 4/255\n"
                            "sparsight attack runs/demo --attack pgd --eps 4/255 --set attack.steps=10\n"
                            "sparsight attack runs/demo --attack pgd --eps 4/255 --set attack.preset=paper\n"
                            "sparsight attack runs/demo --attack pgd --eps 1/255,2/255,4/255,8/255\n"
                            "sparsight attack runs/demo --norm l2 --eps 0.5 --images 200 --out attacks/l2\n"
                            "sparsight attack runs/demo --attack apgd --target least_likely --eps 4/255\n"
                            "sparsight attack runs/demo --attack pgd --target fish --only-classes star,key\n"
                            "sparsight attack runs/demo --weights int8 --attack square --eps 4/255\n"
                            "sparsight attack runs/demo --noise --set attack.version=rand --eps 4/255\n"
                            "sparsight attack vit.safetensors --data imagenet/ --split val --eps 4/255\n"
                            "sparsight attack runs/b --transfer-from runs/a --attack pgd --eps 4/255\n"
                            "sparsight compare runs/a/attacks/NAME runs/b/attacks/NAME");
  verb->add_option("run", request.path, "Run folder, checkpoint, or weights in one file or several")
      ->required()
      ->type_name("RUN");
  verb->add_option("--transfer-from", arguments->transfer_from,
                   "Attack this model instead, and evaluate RUN on the images that result")
      ->type_name("RUN");
  add_threat_options(*verb, request);
  add_overrides_option(*verb, request.overrides);
  add_image_options(*verb, request);
  add_pass_options(*verb, request);
  add_checkpoint_option(*verb, request.checkpoint);
  add_weights_option(*verb, request.weights);
  add_bare_weights_options(*verb, request.bare);
  verb->add_option("--examples", request.examples, "Number of fooled images in examples.html")
      ->check(CLI::Range(int64_t{0}, int64_t{64}))
      ->capture_default_str()
      ->type_name("N");
  verb->add_option("--out", request.out, "Folder to write (default: RUN/attacks/NAME); a killed attack goes on there")
      ->type_name("FOLDER");
  verb->add_flag("--json", arguments->json, "Print the result as one JSON object");
  arguments->launch.declare(*verb,
                            "Attack with so many processes on this machine, which share the images: the same records");
  verb->callback([arguments] { run_attack_verb(*arguments); });
}

}  // namespace sparsight::cli
