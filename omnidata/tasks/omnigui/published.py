"""The tables of OmniGUI's paper; the groups of its rows fit 699 of its 709 episodes."""

from __future__ import annotations

from omnidata.tasks.published import HISTORY, TableSpec, Variation

TABLES = (
    TableSpec(
        "main",
        "Main results",
        "dimension",
        {
            "localization": "Localization",
            "semantic_understanding": "Semantic Understand.",
            "cross_modal_discrimination": "Cross-modal Discr.",
            "temporal_reasoning": "Temporal Reason.",
            "instant_response": "Instant Resp.",
        },
        like="OmniGUI, Table 3",
    ),
    TableSpec(
        "dependency",
        "Dependency levels",
        "dependency",
        {"critical": "AV-Critical", "supportive": "AV-Supportive", "present": "AV-Present"},
        whole_last=True,
        like="OmniGUI, Table 4",
        varied="dependency levels",
    ),
)
VARIATIONS = (
    Variation(  # Table 4, whose marks go down a model's rows
        "modalities",
        "IAV",
        {
            "IAV": "Full (I+A+V)",
            "IV": "No Audio (I+V)",
            "IA": "No Video (I+A)",
            "I": "No AV (Img Only)",
        },
        "Modality ablation",
        "Modality Input",
    ),
    Variation(  # Table 5
        "voice",
        "",
        {"": "Text (Baseline)", "TTS": "TTS Voice"},
        "Instruction as text and as voice",
        "Instruction",
        other="TTS Voice",
        besides=frozenset({"voice_form"}),
        across=True,
    ),
    HISTORY,
)
