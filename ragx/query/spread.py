"""Heat over the graph: what the best hits name, link to or use comes in below them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ragx.algo import fusion
from ragx.algo.graph import EDGE_KINDS, CsrGraph
from ragx.algo.heat import Heat, HeatOptions, hops_of, lift, propagate
from ragx.algo.ordering import rank_hits
from ragx.store.base import Reader
from ragx.types import Chunk, Hit, Hop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SpreadOptions", "spread"]

_N_SEEDS = 5  # hits that heat starts from
# Where one file names another; neighbourhood costs precision (research/graph.md).
_WEIGHTS = {"adjacent": 0.0, "similar": 0.3}


@dataclass(frozen=True, slots=True)
class SpreadOptions:
    """Settings from `[traversal]`, `[graph.weights]` and `[scoring]`.

    Args:
        query_floor: least cosine to the query of what a `similar` edge may bring in.
        weights: factor by edge kind, 1 where it is not named. That of `similar` counts where the
            searches find fewer than `thin` files, or `similar_always`: elsewhere such edges
            cost precision.
        ranked: whether scores are reciprocal ranks.
        cap: hold what heat lifts below the seed it came from.
        formula: "capped" adds heat to the fused score; "seed" is the seed document's sum,
            beta x heat + gamma x vector, each scaled over the candidates.
    """

    hops: int = 2
    decay: float = 0.7
    query_floor: float = 0.35
    max_frontier: int = 150
    cap: bool = True
    weights: Mapping[str, float] = field(default_factory=lambda: dict(_WEIGHTS))
    formula: Literal["capped", "seed"] = "capped"
    similar_always: bool = False
    thin: int = 20
    ranked: bool = False
    beta_heat: float = 0.25
    gamma_vector: float = 0.15


def spread(
    reader: Reader,
    hits: Sequence[Hit],
    chunks: dict[int, Chunk],
    options: SpreadOptions,
    *,
    vector: NDArray[np.float32] | None,
    exclude: str,
    top: int,
) -> list[Hit]:
    """Hits of the first stage and what the graph brings in, with `heat` and `cap` terms.

    Args:
        hits: scored by the searches, in any order.
        chunks: those of the hits; chunks that come in are added.
        vector: (d,) query vector for the floor of `similar` edges; without one, who asks for words
            gets no likeness.
        reader: where it has a scope, heat does not leave that.
        exclude: full-text expression of chunks that heat must not reach.
        top: files wanted, for which there must be enough candidates.
    """
    import numpy as np

    graph = reader.graph()
    if not options.hops or not hits or not graph.n_edges:
        return list(hits)
    seed_formula = options.formula == "seed"
    by_id = {hit.chunk_id: hit for hit in hits}
    # Reciprocal ranks lie close together, far from 0: their last stands for nothing.
    zero = min(hit.score for hit in hits) if options.ranked else 0.0
    seeds = rank_hits(hits)
    seeds = seeds if seed_formula else _distinct(seeds, chunks)[:_N_SEEDS]
    nodes = graph.nodes_of([hit.chunk_id for hit in seeds])
    heat = propagate(
        graph,
        nodes[nodes >= 0],
        np.array([hit.score - zero for hit in seeds])[nodes >= 0],
        _heat_options(
            options, thin=vector is not None and len({hit.path for hit in hits}) < options.thin
        ),
        admits=_floor(reader, graph, vector, options.query_floor),
        bars=_barred(reader, graph, exclude),
    )
    limit = max(options.max_frontier, 5 * top)
    places = _hottest(graph, heat, by_id, limit)
    new = [int(graph.ids[heat.nodes[at]]) for at in places]
    chunks.update(reader.chunks([chunk_id for chunk_id in new if chunk_id not in by_id]))
    if seed_formula:
        reached = {
            chunk_id: (float(heat.heat[at]), _way(graph, heat, at))
            for chunk_id, at in zip(new, places, strict=True)
        }
        return _seed_formula(reader, by_id, reached, chunks, options, vector)
    lifted = dict(by_id)
    for chunk_id, at in zip(new, places, strict=True):
        hit = by_id.get(chunk_id)
        base = hit.score - zero if hit else 0.0
        origin = by_id[int(graph.ids[heat.origins[at]])]
        amount = float(heat.heat[at])
        score, cap = lift(base, amount, origin.score - zero, capped=options.cap)
        if score > base:
            # What comes in from outside the shortlists starts where they end.
            added = {"heat": amount if hit else amount + zero, "cap": cap}
            hops = _way(graph, heat, at)
            hit = hit or _blank(chunks[chunk_id])
            lifted[chunk_id] = _heated(hit, zero + score, added, hops, origin)
    return list(lifted.values())


def _distinct(ranking: Sequence[Hit], chunks: Mapping[int, Chunk]) -> list[Hit]:
    """The first hit of each distinct text: the others will be folded into it."""
    found: dict[str, Hit] = {}
    for hit in ranking:
        found.setdefault(chunks[hit.chunk_id].text.strip(), hit)
        if len(found) == _N_SEEDS:
            break
    return list(found.values())


def _hottest(graph: CsrGraph, heat: Heat, by_id: Mapping[int, Hit], limit: int) -> list[int]:
    """Places in `heat` of every hit that it reached, and of the hottest others."""
    import numpy as np

    known = np.isin(graph.ids[heat.nodes], np.fromiter(by_id, np.int64, len(by_id)))
    others = np.flatnonzero(~known)
    others = others[np.lexsort((heat.nodes[others], -heat.heat[others]))[:limit]]
    return [*np.flatnonzero(known).tolist(), *others.tolist()]


def _way(graph: CsrGraph, heat: Heat, at: int) -> tuple[Hop, ...]:
    return hops_of(graph, heat.way_to(int(heat.nodes[at])))


def _heat_options(options: SpreadOptions, *, thin: bool) -> HeatOptions:
    if options.formula == "seed":
        only = {kind: float(kind == "similar") for kind in EDGE_KINDS}
        return HeatOptions(options.hops, options.decay, True, False, options.max_frontier, only)
    weights = dict(options.weights)
    if not (thin or options.similar_always):
        weights["similar"] = 0.0
    return HeatOptions(
        options.hops, options.decay, max_frontier=options.max_frontier, weights=weights
    )


def _floor(
    reader: Reader, graph: CsrGraph, vector: NDArray[np.float32] | None, floor: float
) -> Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None:
    if vector is None:
        return None

    def admits(nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        import numpy as np

        ids = graph.ids[nodes].tolist()
        cosines = reader.vector_scores(vector, ids)
        return np.array([cosines.get(chunk_id, -1.0) >= floor for chunk_id in ids], np.bool_)

    return admits


def _barred(
    reader: Reader, graph: CsrGraph, exclude: str
) -> Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None:
    """Whether a node is none that the question is about: left out by a word, or by a filter."""
    scope = reader.scope
    if not exclude and scope is None:
        return None

    def bars(nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        import numpy as np

        ids = graph.ids[nodes]
        barred = np.zeros(len(ids), np.bool_)
        if scope is not None:
            barred |= ~np.isin(ids, scope)
        if exclude:
            matching = reader.matching(exclude, ids.tolist())
            barred |= np.array([chunk_id in matching for chunk_id in ids.tolist()], np.bool_)
        return barred

    return bars


def _blank(chunk: Chunk) -> Hit:
    return Hit(chunk.chunk_id, chunk.path, chunk.ordinal, 0.0)


def _heated(
    hit: Hit, score: float, added: Mapping[str, float], hops: tuple[Hop, ...], origin: Hit
) -> Hit:
    # Not summed again: what one cap holds must tie exactly.
    terms = {**hit.terms, **{name: value for name, value in added.items() if value}}
    return replace(
        hit,
        score=score,
        terms=terms,
        hops=hops,
        seed_path=origin.path,
        seed_score=origin.score,
    )


def _seed_formula(
    reader: Reader,
    by_id: Mapping[int, Hit],
    reached: Mapping[int, tuple[float, tuple[Hop, ...]]],
    chunks: Mapping[int, Chunk],
    options: SpreadOptions,
    vector: NDArray[np.float32] | None,
) -> list[Hit]:
    """The sum of the seed document without its reranker, whose weight goes to the other two."""
    heat = {chunk_id: hit.score for chunk_id, hit in by_id.items()}
    for chunk_id, (amount, _) in reached.items():
        heat[chunk_id] = max(heat.get(chunk_id, 0.0), amount)
    cosines = reader.vector_scores(vector, heat.keys()) if vector is not None else {}
    warm, near = fusion.scale_by_range(heat), fusion.scale_by_range(cosines)
    whole = options.beta_heat + options.gamma_vector or 1.0
    hits = []
    for chunk_id, whole_heat in heat.items():
        hit = by_id.get(chunk_id) or _blank(chunks[chunk_id])
        amount, hops = reached.get(chunk_id, (0.0, ()))
        spread_here = amount > hit.score
        terms = {
            "heat": options.beta_heat / whole * warm[chunk_id],
            "vector": options.gamma_vector / whole * near.get(chunk_id, 0.0),
        }
        hits.append(
            replace(
                hit,
                score=fusion.total(terms),
                terms=terms,
                # Unscaled: a reranker's candidates are chosen and scaled by them.
                raw={
                    **hit.raw,
                    "heat_score": whole_heat,
                    **({"cosine": cosines[chunk_id]} if chunk_id in cosines else {}),
                },
                hops=hops if spread_here else (),
                seed_path=chunks[hops[0].source].path if spread_here else "",
            )
        )
    return hits
