"""sparsight.Router: every router of the library by name, some against plain PyTorch, mistakes. opcheck and gradcheck:
registry_test.py."""
import copy
import io
import pickle
import unittest

import support  # noqa: F401
import torch
import torch.nn.functional as F

import sparsight

B, S, D, E = 2, 6, 8, 4
ALL = sorted(sparsight.routers())


def images():
    return torch.randn(B, S, D)


class EveryRouter(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_routes_and_trains(self):
        for name in ALL:
            with self.subTest(name):
                router = sparsight.Router(name, D, E)
                x = images().requires_grad_()
                routing = router(x, target=None if router.soft else torch.full((B, E), 1 / E))
                if router.soft:
                    self.assertEqual(routing.dispatch.shape, (B, S, E))
                    torch.testing.assert_close(routing.combine.sum(2), torch.ones(B, S))
                    (routing.dispatch.square().sum() + routing.combine.square().sum()).backward()
                else:
                    made = routing.expert >= 0
                    self.assertTrue(torch.equal(torch.bincount(routing.expert[made], minlength=E), routing.chosen_count))
                    if router.per_token:
                        self.assertEqual(routing.expert.shape, (B * S * router.per_token,))
                        self.assertTrue(torch.equal(routing.token, torch.arange(B * S).repeat_interleave(router.per_token)))
                    self.assertEqual(set(routing.losses), set(router.loss_weights))
                    if not list(router.parameters()):
                        continue
                    (routing.gate.square().sum() + routing.loss).backward()
                for parameter in (x, *router.parameters()):
                    self.assertTrue(parameter.grad.isfinite().all())

    def test_no_tokens(self):
        for name in ALL:
            with self.subTest(name):
                router = sparsight.Router(name, D, E)
                routing = router(torch.randn(0, S, D))
                self.assertEqual((routing.combine if router.soft else routing.gate).numel(), 0)

    def test_state_survives(self):
        for name in ALL:
            with self.subTest(name):
                router = sparsight.Router(name, D, E)
                router.eval()
                x = images()
                # The seed of hash, which has no state, is a setting.
                other = sparsight.Router(name, D, E, seed=None if name == "hash" else 9).eval()
                other.load_state_dict(router.state_dict())
                file = io.BytesIO()
                pickle.dump(router, file)
                file.seek(0)
                first = router(x)
                for again in (other, copy.deepcopy(router), pickle.load(file)):
                    for a, b in zip(first[:4], again(x)[:4]):
                        if isinstance(a, torch.Tensor):
                            self.assertTrue(torch.equal(a, b))

    def test_padding_gets_no_expert(self):
        valid = torch.ones(B, S, dtype=torch.bool)
        valid[:, 4:] = False
        for name in ALL:
            with self.subTest(name):
                router = sparsight.Router(name, D, E)
                x = images().masked_fill(~valid[..., None], float("nan")).requires_grad_()
                routing = router(x, valid=valid)
                gates = routing.combine if router.soft else routing.gate
                self.assertTrue(gates.isfinite().all())
                if not router.soft:
                    self.assertTrue(valid.reshape(-1)[routing.token[routing.expert >= 0]].all())
                if gates.requires_grad:
                    gates.sum().backward()
                    for parameter in router.parameters():
                        self.assertTrue(parameter.grad is None or parameter.grad.isfinite().all())

    def test_half_types_are_routed_in_fp32(self):
        for name in ALL:
            with self.subTest(name):
                router = sparsight.Router(name, D, E)
                routing = router(images().bfloat16())
                self.assertEqual((routing.combine if router.soft else routing.gate).dtype, torch.float32)


class Decisions(unittest.TestCase):
    """Against the formulas written out."""

    def setUp(self):
        torch.manual_seed(0)
        self.x = images()
        self.flat = self.x.reshape(-1, D)

    def router(self, name, **options):
        router = sparsight.Router(name, D, E, **options)
        for parameter in router.parameters():
            torch.nn.init.normal_(parameter)
        return router

    def test_softmax_topk(self):
        router, noise = self.router("softmax_topk", k=2), torch.randn(B * S, E)
        logits = self.flat @ router.weight.T + noise / E  # V-MoE: noise of standard deviation 1/E
        gate, expert = logits.softmax(1).topk(2, dim=1)
        routing = router(self.x, samples={"noise": noise})
        self.assertTrue(torch.equal(routing.expert.view(-1, 2), expert))
        torch.testing.assert_close(routing.gate.view(-1, 2), gate)
        torch.testing.assert_close(routing.scores, logits.softmax(1))
        torch.testing.assert_close(routing.logits, self.flat @ router.weight.T)

    def test_noisy_topk(self):
        router, noise = self.router("noisy_topk", k=2), torch.randn(B * S, E)
        scale = F.softplus(self.flat @ router.noise_weight.T) + 0.01
        clean = self.flat @ router.weight.T
        best, expert = (clean + noise * scale).topk(2, dim=1)
        routing = router(self.x, samples={"noise": noise})
        self.assertTrue(torch.equal(routing.expert.view(-1, 2), expert))
        torch.testing.assert_close(routing.gate.view(-1, 2), best.softmax(1))
        sums = torch.zeros(E).index_add(0, expert.reshape(-1), best.softmax(1).reshape(-1))
        torch.testing.assert_close(routing.losses["importance"], sums.var(unbiased=False) / sums.mean() ** 2)

    def test_gshard_skips_second_choices(self):
        router = self.router("gshard_top2", second="threshold", threshold=0.3)
        p = (self.flat @ router.weight.T).softmax(1)
        best, expert = p.topk(2, dim=1)
        gate = best / best.sum(1, keepdim=True)
        used = torch.stack([torch.ones(B * S, dtype=torch.bool), gate[:, 1] > 0.3], 1)
        self.assertTrue(used.any() and not used.all())
        routing = router(self.x)
        self.assertTrue(torch.equal(routing.expert.view(-1, 2), expert.masked_fill(~used, -1)))
        self.assertTrue(torch.equal(routing.kept.view(-1, 2), used))
        torch.testing.assert_close(routing.gate.view(-1, 2), gate * used)

    def test_sigmoid_bias_moves_towards_balance(self):
        router = self.router("sigmoid_bias", k=1, rate=0.5)
        routing = router(self.x)
        count = torch.bincount(torch.sigmoid(self.flat @ router.weight.T).argmax(1), minlength=E)
        self.assertTrue(torch.equal(routing.chosen_count, count))
        router.post_step_update(routing)
        torch.testing.assert_close(router.bias, 0.5 * torch.sign(count.double().mean() - count).float())
        self.assertEqual(router.steps, 1)

    def test_balanced_hierarchical_learns_thresholds_on_both_levels(self):
        router = self.router("balanced_hierarchical", groups=2, k_groups=1, k=1, rate=0.5)
        padding = torch.arange(B * S) < 8
        routings = [router(self.x), router(torch.randn(B, S, D), valid=padding.view(B, S))]
        for r, valid in zip(routings, (torch.ones(B * S, dtype=torch.bool), padding)):
            self.assertEqual(r.group_scores.shape, (B * S, 2))
            torch.testing.assert_close(r.group_scores.sum(1), valid.float())  # 0 for padding
            half = valid.sum() // 2  # each group takes its half of the tokens, the best ones
            best = r.group_scores.masked_fill(~valid[:, None], -1).topk(int(half), dim=0).indices
            self.assertTrue(torch.equal(r.group_chosen, torch.zeros(B * S, 2, dtype=torch.bool).scatter(0, best, True)))
            self.assertTrue(r.group_chosen[r.token, r.expert // 2].all())
        # threshold + rate / its number of thresholds * (scores above - rows wanted) / rows wanted
        group_above = sum((r.group_scores[v] > 0.5).sum(0) for r, v in zip(routings, (padding >= 0, padding)))
        above = sum((r.scores[v] > 0.5).sum(0) for r, v in zip(routings, (padding >= 0, padding)))
        router.post_step_update(*routings)
        torch.testing.assert_close(router.group_threshold, 0.5 + 0.5 / 2 * (group_above - 10) / 10)
        torch.testing.assert_close(router.threshold, (0.5 + 0.5 / 2 * (above - 5) / 5).clamp_min(0))
        self.assertFalse(torch.equal(router.group_threshold, torch.full((2,), 0.5)))
        self.assertEqual(router.steps, 1)

    def test_thresholds_follow_until_evaluation_takes_what_training_took(self):
        for name in ("balanced_batchwise", "balanced_hierarchical"):
            router = self.router(name, k=1, rate=0.3, rate_decay_steps=100)
            x = torch.randn(50, S, D)

            def taken():
                r = router.eval()(x)
                return sorted(zip(r.token.tolist(), r.expert.tolist()))

            r = router.train()(x)
            wanted = sorted(zip(r.token.tolist(), r.expert.tolist()))
            self.assertNotEqual(taken(), wanted)
            for _ in range(100):
                router.post_step_update(router.train()(x))
            self.assertEqual(taken(), wanted)

    def test_expert_choice(self):
        router = self.router("expert_choice", experts_per_token=1, pool="image")
        p = (self.flat @ router.weight.T).softmax(1).view(B, S, E)
        gate, place = p.topk(2, dim=1)  # ceil(1 * 6 / 4) of the tokens of each image
        routing = router(self.x)
        token = place + S * torch.arange(B).view(B, 1, 1)
        self.assertTrue(torch.equal(routing.token, token.permute(2, 0, 1).reshape(-1)))
        torch.testing.assert_close(routing.gate, gate.permute(2, 0, 1).reshape(-1))

    def test_capacity_keeps_first_choices(self):
        router = sparsight.Router("softmax_topk", D, E, k=1, capacity=1.0, seed=1)
        routing = router(self.x, seed=5)
        seats, kept = [3] * E, []  # 12 tokens, 4 experts
        for e in routing.expert.tolist():
            kept.append(seats[e] > 0)
            seats[e] -= 1
        self.assertEqual(routing.kept.tolist(), kept)

    def test_experts_per_token(self):
        """The logits are the tokens: 2, 0 and 3 positive ones, then padding. At a factor of .5 each expert has room for
        .5 * 5 / 4 = .63 tokens, rounded up to 1: expert 2 is that of token 0, expert 0 of token 2, then 0 is full, and 1
        and 2 are requested by token 2, of which 1 is free."""
        router = self.router("relu", capacity={"factor": 0.5})
        with torch.no_grad():
            router.weight.copy_(torch.eye(E, D))
        x = torch.zeros(1, 4, D)
        x[0, :, :E] = torch.tensor([[1., -1, 2, -1], [-1, -1, -1, -1], [1, 1, 1, -1], [0, 0, 3, 1]])
        routing = router(x, valid=torch.tensor([[True, True, True, False]]))
        self.assertEqual(routing.tokens_with.tolist(), [1, 0, 1, 1, 0])
        self.assertAlmostEqual(routing.experts_per_token.item(), 5 / 3, places=6)
        self.assertEqual(routing.tokens_with_kept.tolist(), [1, 1, 1, 0, 0])
        self.assertEqual(routing.kept_per_token.item(), 1)
        # With a fixed k, without logits, without tokens.
        self.assertEqual(self.router("softmax_topk", k=3)(self.x).tokens_with.tolist(), [0, 0, 0, B * S, 0])
        self.assertEqual(self.router("random", k=1)(self.x).tokens_with.tolist(), [0, B * S, 0, 0, 0])
        nothing = self.router("softmax_topk")(torch.randn(0, S, D))
        self.assertEqual((nothing.experts_per_token.item(), nothing.tokens_with.sum().item()), (0, 0))

    def test_seed_repeats_and_generator_too(self):
        router = self.router("softmax_topk", noise=100.0)
        self.assertTrue(torch.equal(router(self.x, seed=1).expert, router(self.x, seed=1).expert))
        self.assertFalse(torch.equal(router(self.x, seed=1).expert, router(self.x, seed=2).expert))
        torch.manual_seed(7)
        first = router(self.x).expert
        torch.manual_seed(7)
        self.assertTrue(torch.equal(first, router(self.x).expert))
        self.assertTrue(torch.equal(sparsight.Router("cosine", D, E, seed=3).projector,
                                    sparsight.Router("cosine", D, E, seed=3).projector))


class LeadingTokens(unittest.TestCase):
    """prefix: the class token and other prefix tokens."""

    def test_one_expert_per_image_by_its_class_token(self):
        for options in ({}, {"input": "class_token"}, {"input": "mean_patches"}):
            with self.subTest(**options):
                router = sparsight.Router("per_image", D, E, prefix=1, norm="none", **options).eval()
                x = images()
                seen = x[:, 1:].mean(1) if options.get("input") == "mean_patches" else x[:, 0]
                of_images = (seen @ router.weight.T).softmax(1).topk(router.per_token, dim=1)
                expert = of_images.indices.repeat_interleave(S, 0)
                routing = router(x)
                self.assertTrue(torch.equal(routing.expert.view(B * S, -1), expert))
                self.assertEqual(len(router(torch.randn(0, S, D)).gate), 0)

    def test_every_router_takes_them(self):
        for name in ALL:
            with self.subTest(name):
                options = {"patches": S - 2} if name == "patch_choice" else {}
                router = sparsight.Router(name, D, E, prefix=2, **options)
                self.assertIsNotNone(router(images()))
                self.assertIsNotNone(router(torch.randn(0, S, D)))
                with self.assertRaisesRegex(RuntimeError, "prefix = 2 leading tokens, got images of 1 tokens"):
                    router(torch.randn(B, 1, D))
        with self.assertRaisesRegex(ValueError, "prefix must be at least 0, got -1"):
            sparsight.Router("per_image", D, E, prefix=-1)


class VaryingNumbers(unittest.TestCase):
    """Routers of a varying number of experts, against the formulas written out."""

    def setUp(self):
        torch.manual_seed(0)
        self.x = images()

    def router(self, name, **options):
        router = sparsight.Router(name, D, E, **options)
        torch.nn.init.normal_(router.weight)
        return router, self.x.reshape(-1, D) @ router.weight.T

    def dense(self, routing):
        made = routing.expert >= 0
        return torch.zeros(B * S, E).index_put((routing.token[made], routing.expert[made]), routing.gate[made])

    def test_relu(self):
        router, logits = self.router("relu", mean_k=2, coefficient=0.25)
        routing = router(self.x)
        torch.testing.assert_close(self.dense(routing), logits.relu())
        share = (logits > 0).sum(0) * E / (2 * B * S)
        torch.testing.assert_close(routing.losses["relu_l1"], 0.25 * (logits.relu() * share).sum(1).mean())
        torch.testing.assert_close(routing.loss, routing.losses["relu_l1"])
        sparsity = 1 - (logits > 0).float().mean()
        torch.testing.assert_close(routing.metrics["sparsity"], sparsity)
        torch.testing.assert_close(routing.metrics["l1_coefficient"], torch.tensor(0.25))
        router.post_step_update(routing)
        torch.testing.assert_close(router.l1_coefficient, torch.tensor(0.25 * 1.2 ** float(torch.sign(0.5 - sparsity))))

    def test_top_p(self):
        router, logits = self.router("top_p", p=0.6)
        routing = router(self.x)
        best, expert = logits.softmax(1).sort(1, descending=True)
        gates = best * (best.cumsum(1) - best < 0.6)
        torch.testing.assert_close(self.dense(routing), torch.zeros(B * S, E).scatter(1, expert, gates))
        self.assertEqual(set(routing.losses), {"switch", "entropy"})
        self.assertEqual(sparsight.Router("hash", D, E)(self.x).metrics, {})


class Draws(unittest.TestCase):
    def test_are_those_that_routers_ask_for(self):
        named = {name for router in ALL for name in sparsight.Router(router, D, E).sample_names}
        self.assertEqual(named, {"noise", "group_noise", "jitter", "second", "second_expert", "draw", "ties"})
        for name in ALL:
            looked_at = set()
            # By default the others draw all that they can.
            settings = {"gshard_top2": [{"second": "random"}, {"second": "all", "sample_second": True}],
                        "per_image": [{"noise": 1.0, "ties": "random"}],
                        **{name: [{"ties": "random"}] for name in ("softmax_topk", "cosine", "noisy_topk")}}
            for options in settings.get(name, [{}]):
                router = sparsight.Router(name, D, E, **options)
                for draw in named:
                    with self.subTest(name, draw=draw):
                        if draw not in router.sample_names:
                            with self.assertRaisesRegex(ValueError, f'unknown samples "{draw}"'):
                                router(images(), samples={draw: torch.zeros(1, 1, 1)})
                            continue
                        try:
                            router(images(), samples={draw: torch.zeros(1, 1, 1)})
                        except RuntimeError as error:
                            self.assertIn(f'the samples "{draw}" have the shape [1, 1, 1]', str(error))
                            looked_at.add(draw)
            self.assertEqual(looked_at, set(router.sample_names), name)

    def test_unknown_ones_are_named(self):
        with self.assertRaisesRegex(ValueError, 'unknown samples "secnd" of the router gshard_top2; did you mean "second"'):
            sparsight.Router("gshard_top2", D, E)(images(), samples={"secnd": torch.rand(B * S, 1)})
        for name in ("hash", "soft_moe"):
            with self.assertRaisesRegex(ValueError, f'unknown samples "noise": the router {name} takes no samples'):
                sparsight.Router(name, D, E)(images(), samples={"noise": torch.rand(B * S, E)})
        # Known and not needed: evaluation has no noise.
        sparsight.Router("noisy_topk", D, E).eval()(images(), samples={"noise": torch.rand(B * S, E)})


class Places(unittest.TestCase):
    def test_on_meta_nothing_is_drawn(self):
        before = torch.random.get_rng_state()
        with torch.device("meta"):
            layers = [sparsight.MoEMLP(D, 16, E, router=name) for name in ALL]
            with self.assertRaisesRegex(ValueError, "unknown activation"):
                sparsight.MoEMLP(D, 16, E, activation="gleu")
        for name, layer in zip(ALL, layers):
            with self.subTest(name):
                self.assertTrue(all(t.is_meta for t in layer.state_dict().values()))
                layer.to_empty(device="cpu")
                for module in layer.modules():
                    if hasattr(module, "reset_parameters"):
                        module.reset_parameters()
                self.assertTrue(layer(images()).isfinite().all())
        with torch.device("meta"):
            sparsight.Router("hash", D, E)  # without weights
        torch.random.set_rng_state(before)


class Mistakes(unittest.TestCase):
    def test_names(self):
        with self.assertRaisesRegex(ValueError, 'unknown router "noisy_topkk"; did you mean "noisy_topk"'):
            sparsight.Router("noisy_topkk", D, E)
        with self.assertRaisesRegex(ValueError, "did you mean.*noise"):
            sparsight.Router("softmax_topk", D, E, nois=1.0)
        with self.assertRaisesRegex(ValueError, "did you mean.*router_z"):
            sparsight.Router("softmax_topk", D, E, losses={"router_y": 1.0})

    def test_values(self):
        with self.assertRaisesRegex(ValueError, "chooses 5 experts per token but .*experts is 4"):
            sparsight.Router("softmax_topk", D, E, k=5)
        with self.assertRaisesRegex(ValueError, "must be from 0 to 1000, got -1"):
            sparsight.Router("softmax_topk", D, E, noise=-1.0)
        with self.assertRaisesRegex(ValueError, "experts must be at least 1"):
            sparsight.Router("softmax_topk", D, 0)

    def test_numbers(self):
        nan, inf = float("nan"), float("inf")
        for options, message in (({"noise": nan}, "noise must be finite, got nan"),
                                 ({"losses": {"switch": nan}}, "switch must be finite, got nan"),
                                 ({"capacity": inf}, "factor must be finite, got inf"),
                                 ({"capacity": {"eval_factor": -inf}}, "eval_factor must be finite, got -inf"),
                                 ({"seed": -1}, "seed must be at least 0, got -1")):
            with self.assertRaisesRegex(ValueError, message):
                sparsight.Router("softmax_topk", D, E, **options)
        for options, message in (({"prefix": 1.5}, "prefix must be an integer, got 1.5"),
                                 ({"seed": True}, "seed must be an integer, got True"),
                                 ({"capacity": True}, "capacity must be a number, a dict of settings or None, got True"),
                                 ({"capacity": "1"}, "capacity must be a number, a dict")):
            with self.assertRaisesRegex(TypeError, message):
                sparsight.Router("softmax_topk", D, E, **options)
        with self.assertRaisesRegex(ValueError, "dim must be at least 1, got 0"):
            sparsight.Router("softmax_topk", 0, E)
        with self.assertRaisesRegex(TypeError, "experts must be an integer, got 4.0"):
            sparsight.Router("softmax_topk", D, 4.0)
        with self.assertRaisesRegex(TypeError, "by name; got NoneType"):
            sparsight.Router(None, D, E)

    def test_ids_and_targets(self):
        hashed = sparsight.Router("hash", D, E)
        with self.assertRaisesRegex(RuntimeError, "token_id must be integers, got Float"):
            hashed(images(), token_id=torch.rand(B, S))
        ids = torch.randint(100, (B, S))
        self.assertTrue(torch.equal(hashed(images(), token_id=ids).expert, hashed(images(), token_id=ids.int()).expert))
        guided = sparsight.Router("per_image", D, E)
        for wrong in (float("nan"), float("inf"), -0.5):
            target = torch.full((B, E), 1 / E)
            target[1, 2] = wrong
            with self.assertRaisesRegex(RuntimeError, "target must be finite numbers of at least 0"):
                guided(images(), target=target)
        with self.assertRaisesRegex(RuntimeError, "seed must be one integer"):
            guided(images(), seed=torch.tensor(0.5))

    def test_shapes(self):
        router = sparsight.Router("softmax_topk", D, E)
        for name in ALL:
            with self.assertRaisesRegex(RuntimeError, "tokens of width 9, the router was made for dim = 8"):
                sparsight.Router(name, D, E)(torch.randn(B, S, D + 1))
        with self.assertRaisesRegex(RuntimeError, 'samples "noise" have the shape'):
            router(torch.randn(3, D), samples={"noise": torch.randn(3, E + 1)})
        with self.assertRaisesRegex(RuntimeError, "valid has the shape"):
            router(torch.randn(3, D), valid=torch.ones(4, dtype=torch.bool))
        with self.assertRaisesRegex(RuntimeError, "valid must be bool, got Int"):
            router(torch.randn(3, D), valid=torch.ones(3, dtype=torch.int32))
        weight, router.weight = router.weight, torch.nn.Parameter(torch.randn(E + 1, D))
        with self.assertRaisesRegex(RuntimeError, r"weight has shape \[4, 8\], got \[5, 8\]"):
            router(torch.randn(3, D))
        router.weight = weight
        self.assertEqual(len(router(torch.randn(3, D)).gate), 3 * router.per_token)
        with self.assertRaisesRegex(RuntimeError, "no second derivative"):
            x = torch.randn(3, D, requires_grad=True)
            torch.autograd.grad(router(x).gate.sum(), x, create_graph=True)


if __name__ == "__main__":
    unittest.main()
