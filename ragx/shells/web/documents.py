"""A map and a chunk as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragx.shells.cli.edges import evidence_document, words_of
from ragx.shells.cli.places import label_of, lines_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragx.api import ChunkView, ContextLines, CorpusMap, Neighbour, Surroundings
    from ragx.types import Chunk

__all__ = ["chunk_document", "graph_document"]


def graph_document(drawn: CorpusMap) -> dict[str, object]:
    """`ragx.graph.v1`."""
    return {
        "schema": "ragx.graph.v1",
        "meta": {
            "root": str(drawn.root),
            "name": drawn.name,
            "edge_source": drawn.edge_source,
            "subchunk_size_tokens": drawn.subchunk_size_tokens,
            "embedding_model": drawn.embedding_model or None,
            "nodes": drawn.n_nodes,
            "edges": drawn.n_edges,
            "communities": drawn.n_communities,
            "shown_nodes": len(drawn.nodes),
            "shown_edges": len(drawn.edges),
            "edge_counts": dict(drawn.edge_counts),
            "grouping": drawn.grouping,
            "extent": round(drawn.extent, 2),
            "notices": list(drawn.notices),
        },
        "nodes": [
            {
                "id": node.chunk.chunk_id,
                "file": node.chunk.path,
                **_lines(node.chunk),
                "label": node.label,
                "community": node.community,
                "degree": node.degree,
                "x": round(node.x, 2),
                "y": round(node.y, 2),
            }
            for node in drawn.nodes
        ],
        "edges": [[edge.source, edge.target, round(edge.weight, 4)] for edge in drawn.edges],
        "edge_kinds": [edge.kind for edge in drawn.edges],
        "communities": [
            {
                "community_id": group.number,
                "label": group.label,
                "size": group.size,
                "files": group.n_files,
                "x": round(group.x, 2),
                "y": round(group.y, 2),
                "radius": round(group.radius, 2),
            }
            for group in drawn.communities
        ],
        "groups": [
            {
                "community": group.community,
                "file": group.path,
                "size": group.size,
                "x": round(group.x, 2),
                "y": round(group.y, 2),
                "radius": round(group.radius, 2),
            }
            for group in drawn.groups
        ],
    }


def _lines(chunk: Chunk) -> dict[str, object]:
    """Lines of a text file; of a document, where a locator for each node would be most of the map,
    the place in words."""
    if chunk.locator is None:
        return {"line_start": chunk.line_start, "line_end": chunk.line_end}
    return {"line_start": None, "line_end": None, "place": label_of(chunk)}


def chunk_document(view: ChunkView, around: Surroundings, drawn: CorpusMap) -> dict[str, object]:
    """`ragx.chunk.v1`; the map tells what the chunk and its neighbours are called on it."""
    chunk = view.chunk
    node = drawn.node(chunk.chunk_id)
    group = None if node is None else drawn.community(node.community)
    return {
        "schema": "ragx.chunk.v1",
        "id": chunk.chunk_id,
        "file": chunk.path,
        **lines_document(chunk),
        "heading": list(chunk.heading),
        "symbols": list(chunk.symbols),
        "label": drawn.label(chunk),
        "community": None if group is None else group.number,
        "community_label": None if group is None else group.label,
        "degree": view.degree,
        "state": around.state,
        "text": chunk.text,
        "before": _context(around.before),
        "after": _context(around.after),
        "neighbors": [_neighbour(near, chunk, drawn) for near in view.neighbours],
    }


def _context(lines: ContextLines | None) -> Mapping[str, object] | None:
    if lines is None:
        return None
    return {"line_start": lines.line_start, "line_end": lines.line_end, "text": lines.text}


def _neighbour(near: Neighbour, chunk: Chunk, drawn: CorpusMap) -> dict[str, object]:
    ends = {chunk.chunk_id: chunk, near.chunk.chunk_id: near.chunk}
    return {
        "chunk_id": near.chunk.chunk_id,
        "weight": round(near.edge.weight, 6),
        "kind": near.edge.kind,
        "words": words_of(near.edge, chunk.chunk_id),
        "file": near.chunk.path,
        **lines_document(near.chunk),
        "label": drawn.label(near.chunk),
        "evidence": evidence_document(near.edge, ends),
    }
