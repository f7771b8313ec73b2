"""Prints words that the field does not use, with what it says instead: names, help, comments and docs."""
import re
import subprocess
import sys

RETIRED = {
    r"storeys?": "layer, folder",
    r"(held|released?) (expert|weight)s?|--hold\b|hold\(\)": "packed, quantised",
    r"spread_rows|sum_rows": "gather_rows, scatter_add_rows",
    r"multiply_outer|put_turned": "gemm_tn, store_transposed",
    r"few[ _-]rows": "small-M",
    r"memory_is_up_to_date": "compiler_barrier",
    r"PoolInfo|pool_info|asked_for": "RoutingContext, requested",
    r"forward_drawing": "forward_train",
    r"paper_losses": "default_losses",
    r"learns_from_routings|after_step\(": "needs_post_step_update, post_step_update",
    r"Moe(Trial|Place)|moe_trial": "LayerProbe, LayerContext",
    r"take_results": "append_outputs",
    r"beginnings": "prefixes",
    r"stand[-_ ]ins?|stands? in for": "synthetic substitute",
    r"stoppable": "interruptible",
    r"unheard": "discarded",
    r"squared variation": "squared CV",
    r"perceptrons?": "MLP",
    r"manners? of drawing|drawn (image|picture)s?": "style, generated image",
    r"(training|validation|test) parts?": "split",
    r"mend(s|ed|ing)?": "fix",
    r"go(es)? without": "is dropped",
    r"who(m|so)?ever": "name what does it",
    r"the likes? of": "a variant of",
    r"strewn": "scattered",
    r"(and|or) the like": "name the cases, such as",
    r"behind each other": "concatenated, one after the other",
    r"belongs? together": "match",
    r"hand(s|ed)? back": "return",
    r"holds nothing": "is empty",
    r"in the making": "being written",
    r"lies? at": "is at",
    r"passed over": "skipped",
    r"puts? together": "composed of",
    r"takes? away": "remove",
    r"(in|tak(e|es|ing)) the place of": "instead of, replace",
    r"writ(ten|es) aside": "written to a temporary file",
    r"(is|are|was|were) asked": "requested, configured",
    r"(?<!there )is no (?!such )[\w-]+ (file|folder|archive|checkpoint)": "is not a",
    r"draw_(beta|gamma|set|between|colour|pose|style)|drawn_\w+": "sample_, random_, generated_",
    r"settled\(": "with_preset",
    r"joined_digits|kLargestDigit|few_vectors|befores|measure_apart": "quantised row, bf16x3 split, small-M",
    r"\w*(?-i:Stands?Ins?[A-Z])\w*": "synthetic substitute",
    r"(?-i:(//|#) Of)": "a comment with a subject",
}
THIS = "tools/check_words.py"
KINDS = ("*.h", "*.cpp", "*.py", "*.sh", "*.md", "*.toml", "*.cmake", "CMakeLists.txt", "dev")
files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *KINDS],
                       capture_output=True, text=True, check=True).stdout.split()
patterns = [(re.compile(rf"(?<![\w-])(?:{words})(?!\w)", re.IGNORECASE), say) for words, say in RETIRED.items()]
wrong = 0
for file in files:
    if file == THIS or file.startswith(("third_party/", "tests/compat/")):
        continue
    try:
        lines = open(file, encoding="utf-8").read().splitlines()
    except FileNotFoundError:  # removed, and not yet committed
        continue
    for number, line in enumerate(lines, 1):
        for pattern, say in patterns:
            for found in pattern.finditer(line):
                print(f'{file}:{number}: "{found.group()}": say {say}')
                wrong += 1
sys.exit(wrong > 0)
