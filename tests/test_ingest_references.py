"""Reference strings of every usual style. Expected values are read off the strings by eye."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.names import family_key, given_first, split_family_first, split_given_first, split_run_together
from ingest.references import Reference, parse_reference, reference_from_json

STYLES = {
    "ieee": "A. Vaswani, N. Shazeer, and I. Polosukhin, “Attention is all you need,” in Advances in Neural Information Processing Systems, vol. 30, 2017, pp. 5998–6008.",
    "ieee straight quotes": 'A. Vaswani, N. Shazeer, and I. Polosukhin, "Attention is all you need," in Advances in Neural Information Processing Systems, vol. 30, 2017, pp. 5998-6008.',
    "apa": "Vaswani, A., Shazeer, N., & Polosukhin, I. (2017). Attention is all you need. Advances in Neural Information Processing Systems, 30, 5998–6008.",
    "natbib": "Vaswani, A., Shazeer, N., and Polosukhin, I. (2017a). Attention is all you need. In Advances in Neural Information Processing Systems, volume 30, pages 5998–6008. 4, 17",
    "acm": "Ashish Vaswani, Noam Shazeer, and Illia Polosukhin. 2017. Attention is all you need. Advances in Neural Information Processing Systems, Vol. 30 (2017), 5998--6008.",
    "plain": "[12] A. Vaswani, N. Shazeer, and I. Polosukhin. Attention is all you need. In Advances in Neural Information Processing Systems, pages 5998–6008, 2017.",
    "plain, family first": "Vaswani, A., Shazeer, N., and Polosukhin, I. Attention is all you need. In Advances in Neural Information Processing Systems, pp. 5998–6008, 2017.",
    "harvard": "Vaswani, A., Shazeer, N. and Polosukhin, I., 2017. Attention is all you need. Advances in Neural Information Processing Systems, 30, pp. 5998–6008.",
    "vancouver": "7. Vaswani A, Shazeer N, Polosukhin I. Attention is all you need. Advances in Neural Information Processing Systems. 2017;30:5998-6008.",
    "lncs": "Vaswani, A., Shazeer, N., Polosukhin, I.: Attention is all you need. In: Advances in Neural Information Processing Systems, pp. 5998–6008 (2017)",
    "mla": 'Vaswani, Ashish, Noam Shazeer, and Illia Polosukhin. "Attention is all you need." Advances in Neural Information Processing Systems 30 (2017): 5998-6008.',
    "elsevier": "[7] A. Vaswani, N. Shazeer, I. Polosukhin, Attention is all you need, in: Advances in Neural Information Processing Systems, 2017, pp. 5998–6008.",
    "elsevier, journal": "A. Vaswani, N. Shazeer, I. Polosukhin, Attention is all you need, Advances in Neural Information Processing Systems 30 (1) (2017) 5998–6008.",
    "nature": "3. Vaswani, A., Shazeer, N. & Polosukhin, I. Attention is all you need. In Advances in Neural Information Processing Systems 5998–6008 (Curran, 2017).",
    "acm, conference in brackets": "Ashish Vaswani, Noam Shazeer, and Illia Polosukhin. 2017. Attention is all you need. In Advances in Neural Information Processing Systems 30 (NIPS 2017). 5998–6008.",
    "author-year label": "[Vaswani et al., 2017] Ashish Vaswani, Noam Shazeer, and Illia Polosukhin. Attention is all you need. In Advances in Neural Information Processing Systems, 2017.",
    "chicago": "Vaswani, Ashish, Noam Shazeer, and Illia Polosukhin. 2017. “Attention is all you need.” Advances in Neural Information Processing Systems 30: 5998–6008.",
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_one_paper_in_every_style(style):
    found = parse_reference(STYLES[style])
    assert found.title == "Attention is all you need"
    assert [one["family"] for one in found.authors] == ["Vaswani", "Shazeer", "Polosukhin"]
    assert all(one["given"][0] in "ANI" for one in found.authors)
    assert (found.year, found.kind, found.et_al) == (2017, "paper", False)
    assert found.venue == "Advances in Neural Information Processing Systems"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Smith, J. (2020). Alpha [Computer software]. https://doi.org/10.5281/zenodo.1234567", "Alpha [Computer software]"),
        ("S. C. and V. N., “Autoadmin “what-if” index analysis utility,” ACM SIGMOD Record, vol. 27, no. 2, 1998.", "Autoadmin “what-if” index analysis utility"),
        ('S. C. and V. N., "Autoadmin "what-if" index analysis utility," ACM SIGMOD Record, vol. 27, 1998.', 'Autoadmin "what-if" index analysis utility'),
        ("L. Li, “Small models can also” think” step-by-step,” arXiv preprint arXiv:2306.14050, 2023.", "Small models can also” think” step-by-step"),
        ("D. Li, “How long can it promise?” in NeurIPS 2023 Workshop, 2023.", "How long can it promise?"),
        ("Hsieh, C.-Y. (2023). Distilling step-by-step! outperforming larger models. arXiv preprint arXiv:2305.02301.", "Distilling step-by-step! outperforming larger models"),
        ("Dettmers, T. (2022). Llm. int8 (): 8-bit products. arXiv preprint arXiv:2208.07339. 8, 26", "Llm. int8 (): 8-bit products"),
        ("Fedus, W. (2021). Switch: simple and efficient sparsity.(2021). arXiv preprint cs.LG/2101.03961. 15", "Switch: simple and efficient sparsity"),
        ("L. Ouyang, “Following instructions, 2022,” URL https://arxiv.org/abs/2203.02155, vol. 13, 2022.", "Following instructions"),
        ("Cristian Bucila Rich Caruana and Alexandru Niculescu-Mizil. 2006. Model compression.. In KDD. ACM 535--541.", "Model compression"),
        ("Shuming Ma and Furu Wei. 2024. The Era of 1-bit LLMs: All are in 1.58 Bits. arxiv: 2402.17764 [cs.CL]", "The Era of 1-bit LLMs: All are in 1.58 Bits"),
        ("Groq (2023). Groq sets record on llama 2.70b. https://wow.groq.com/groq.", "Groq sets record on llama 2.70b"),
        ("Yu, G.-I. (2022). Orca: A system for {Transformer-Based} models. In 16th USENIX OSDI, pages 521–538. 21", "Orca: A system for {Transformer-Based} models"),
        ("J. Smith. On the U.S. power grid. Energy, 12:1–5, 2001.", "On the U.S. power grid"),
        # a family name of two letters is no initial; an initial may be small or joined by a hyphen
        ("W. Huang, Y. Liu, and X. Qi. Billm: Pushing the limit. arXiv preprint arXiv:2402.04291, 2024.", "Billm: Pushing the limit"),
        ("Ilya Sutskever, Oriol Vinyals, and Quoc V. Le. Sequence to sequence learning. In Advances in Neural Information Processing Systems, 2014.", "Sequence to sequence learning"),
        ("Quoc V. Le and Yi Ma. Deep things. In ICML, 2013.", "Deep things"),
        ("Smith A. Deep learning and more. J Foo. 2020;3(2):1-9.", "Deep learning and more"),
        ("I. Timiryasov and J.-L. Tastet. Baby llama: distillation. arXiv preprint arXiv:2308.02019, 2023.", "Baby llama: distillation"),
        ("P. Lewis, W.-t. Yih, D. d. l. Casas, and T. Rocktäschel. Retrieval for tasks. In NeurIPS, 2020.", "Retrieval for tasks"),
        ("Norman P. Jouppi, Cliff Young, and David Patterson. In-Datacenter Analysis. In ISCA, 2017.", "In-Datacenter Analysis"),
        # a question mark ends a title only where a journal with its volume follows
        ("Golden, A. (2024). Is flash attention stable? Neural Computation, 24(9), 4207–4210.", "Is flash attention stable?"),
        ("Meer, J. (2021). Is attention all you need? A second look. Neural Computation, 3(9), 1–22.", "Is attention all you need? A second look"),
        ("Smith, J., Doe, A.: The “bitter lesson” revisited. IEEE Micro 71(2), 101–115 (2022)", "The “bitter lesson” revisited"),
        ("Jouppi, N. P., Patterson, D., Jr., et al. In-datacenter performance. ISCA, 2017.", "In-datacenter performance"),
        ("I. Goodfellow, Y. Bengio, and A. Courville, Deep Learning. Cambridge, MA, USA: MIT Press, 2016.", "Deep Learning"),
        ("Hennessy, J. L., & Patterson, D. A. (2017). Computer Architecture: An Approach (6th ed.). Morgan Kaufmann.", "Computer Architecture: An Approach"),
    ],
)  # fmt: skip
def test_titles_are_exact_and_whole(text, title):
    assert parse_reference(text).title == title


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("J. Wei, “Chain-of-thought,” Adv. NIPS, vol. 35, pp. 24 824–24 837, 2022.", 2022),
        ("S. Dai, “Sparse attention,” in 2023 60th ACM/IEEE Design Automation Conference (DAC). IEEE, 2024, pp. 1–6.", 2024),
        ("H. Wang, “Spatten,” in 2021 IEEE International Symposium on Architecture (HPCA). IEEE, pp. 97–110.", 2021),
        ("Victor Sanh and Thomas Wolf. 2020. DistilBERT: smaller. arxiv: 1910.01108 [cs.CL]", 2020),
        ("Z. Wan, “Efficient models,” arXiv preprint arXiv:2312.03863, vol. 1, 2023.", 2023),
        ("T. Dao, “Flash-decoding,” [Online], 2023, https://crfm.example.edu/2019/10/12/flashdecoding.html.", 2023),
        ("L. Del Corro, “Lite search,” Advances in NIPS, vol. 35, pp. 24 254–24 267, 202…", None),
        ("W.-L. Chiang, “Vicuna,” See https://vicuna.lmsys. org (accessed 14 April 2021), 2023.", 2023),
    ],
)  # fmt: skip
def test_the_year_is_none_of_the_other_numbers(text, year):
    assert parse_reference(text).year == year


@pytest.mark.parametrize(
    ("text", "kind", "url"),
    [
        ("InternLM, “Lmdeploy,” 2024. [Online]. Available: https://github.com/InternLM/lmdeploy", "software", "https://github.com/InternLM/lmdeploy"),
        ("Y. Fu, “Breaking dependencies,” November 2023. [Online]. Available: https://lmsys.org/blog/2023-11-21-look/", "website", "https://lmsys.org/blog/2023-11-21-look/"),
        ("NVIDIA (2022). Inside hopper. https://www.nvidia.com/en-us/data-center/hopper/. Accessed on March 11, 2024. 24", "product", "https://www.nvidia.com/en-us/data-center/hopper/"),
        ("Ortega, J. M. and Rheinboldt, W. C. (2000). Iterative solution of equations. SIAM. 19", "book", None),
        ("Oseledets, I. V. (2011). Tensor-train decomposition. SIAM Journal on Scientific Computing, 33(5):2295–2317. 13", "paper", None),
        ("Anonymous, “SemSA.” 2023. [Online]. Available: https://openreview.net/forum?id=eG9AkHtYYH", "paper", "https://openreview.net/forum?id=eG9AkHtYYH"),
        ("NVIDIA. 2024. https://github.com/NVIDIA/TensorRT-LLM.", "software", "https://github.com/NVIDIA/TensorRT-LLM"),
        ("Zhao Yang. 2023. Support FP8 · Pull Request #2279. https://github.com/vllm-project/vllm/pull/2279", "website", "https://github.com/vllm-project/vllm/pull/2279"),
        ("HuggingFace (2022). Hugging face accelerate. 21", "software", None),
        ("Javaheripi, M. (2023). Phi-2: Small models. Microsoft Research Blog. 26", "website", None),
        ("A. Radford, “Language models,” OpenAI blog, vol. 1, no. 8, p. 9, 2019.", "paper", None),
        ("Knuth, D. E. (1984). Literate programming. The Computer Journal, 27(2), 97–111. https://doi.org/10.1093/comjnl/27.2.97", "paper", None),
    ],
)  # fmt: skip
def test_papers_books_software_pages_and_products(text, kind, url):
    found = parse_reference(text)
    assert (found.kind, found.url) == (kind, url)


def test_a_cut_string_is_marked_and_not_completed():
    found = parse_reference("Kwon, Y., Lee, S. H., Lee, J., and Kim, N. S. (20…")
    assert found.truncated
    assert (found.title, found.year) == ("", None)
    assert len(found.authors) == 4
    cut = parse_reference("Xiong, W. and Ma, H. (2023). Effective long-context scaling of foundation mo…")
    assert cut.title_truncated
    assert cut.title == "Effective long-context scaling of foundation mo"
    link = parse_reference(
        "Lefaudeux, B. (2022). xformers: A library. https://github.com/facebookresearch/xfor…"
    )
    assert link.url is None
    assert link.kind == "software"


@pytest.mark.parametrize(
    ("text", "family", "given"),
    [
        ("M. de Jong", "de Jong", "M."),
        ("C. De Sa", "De Sa", "C."),
        ("W.-t. Yih", "Yih", "W.-t."),
        ("H. P. d. O. Pinto", "Pinto", "H. P. d. O."),
        ("Íñigo Goiri", "Goiri", "Íñigo"),
        ("Vincent van den Berg", "van den Berg", "Vincent"),
        ("Mart van Baalen", "van Baalen", "Mart"),
        ("J. Smith Jr.", "Smith", "J."),
        ("al-Hakim", "al-Hakim", ""),
        ("’s-Gravesande", "’s-Gravesande", ""),
        ("K. O’Brien", "O’Brien", "K."),
        ("ggerganov", "ggerganov", ""),
    ],
)
def test_a_family_name_is_never_empty_and_keeps_its_particles(text, family, given):
    assert given_first(text) == (family, given)


def test_lists_of_names():
    found = split_given_first("A. Agrawal, N. Kedia, A. Tumanov, , and R. Ramjee")
    assert [one["family"] for one in found.names] == ["Agrawal", "Kedia", "Tumanov", "Ramjee"]
    found = split_family_first("Devvrit, Kudugunta, S., van der Sluis, D., and de Las Casas, D., et al.")
    assert [one["family"] for one in found.names] == ["Devvrit", "Kudugunta", "van der Sluis", "de Las Casas"]
    assert found.et_al
    found = split_family_first("Smith, John; Doe, Jane")
    assert [(one["family"], one["given"]) for one in found.names] == [("Smith", "John"), ("Doe", "Jane")]
    found = split_given_first("NVIDIA")
    assert found.names == ({"family": "NVIDIA"},)
    found = split_run_together("Tim Dettmers Mike Lewis and Luke Zettlemoyer")
    assert [one["family"] for one in found.names] == ["Dettmers", "Lewis", "Zettlemoyer"]
    assert not found.certain


def test_et_al_is_kept_apart_from_the_names():
    found = parse_reference("C. Zhang et al., “Beyond the game,” arXiv preprint arXiv:2404.14897, 2024.")
    assert found.et_al
    assert [one["family"] for one in found.authors] == ["Zhang"]


def test_a_family_key_ignores_accents_particles_and_hyphens():
    assert family_key("Kurtić") == family_key("Kurtiç") == family_key("Kurtic\u0301") == "kurtic"
    assert family_key("van der Berg") == family_key("Berg")
    assert family_key("Lee-Thorp") == family_key("Lee Thorp".replace(" ", "-"))


def test_decomposed_letters_are_composed_at_the_door():
    found = parse_reference("C. Re\u0301 and A. Rudra, “Hippo: memories,” 2020.")
    assert found.authors[0]["family"] == "R\u00e9"


def test_json_and_back():
    found = parse_reference(STYLES["natbib"], number=3)
    assert reference_from_json(found.as_json()) == found
    assert Reference().as_json() == {"kind": "paper"}


def test_parsing_never_raises_on_any_prefix_of_a_reference():
    for text in STYLES.values():
        for end in range(0, len(text), 3):
            parse_reference(text[:end])


PIECES = st.sampled_from(
    ["A", "Doe", ". ", ", ", " and ", "“", "”", '"', "(2020). ", "2020", ". 2020. ", " In ", "arXiv:2301.00001", "10.1000/x",
     "http://x.y/z", " vol. 3", " pp. 3–4", "?", "!", "et al.", " é", "…", "J. ", ": ", "&", " long words here "]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_nothing_is_invented(text):
    """Whatever the string, every part of the answer stands in it."""
    found = parse_reference(text)
    plain = " ".join(text.split())
    assert found.title in plain
    assert all(author["family"] in plain for author in found.authors)
    assert found.year is None or str(found.year) in plain
    assert found.arxiv_id is None or found.arxiv_id in plain


@pytest.mark.parametrize(
    "piece",
    [
        "A. ",
        "A. Bcd, ",
        "A. Bc-De, Fg-Hi Jk-Lm, ",
        "Abc Jr., ",
        "A III, ",
        ", in A ",
        "? In A ",
        "(No. 1) ",
        "“a” ",
        "(2020) ",
        "10.1000/(",
        "Foo Bar ",
        "http://a",
        "[[",
        "]((",
    ],
)
def test_a_string_that_is_no_reference_costs_no_time(piece):
    begun = time.process_time()
    parse_reference(piece * 20_000)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("text", "families"),
    [
        ("LeCun, Yann, Yoshua Bengio, and Geoffrey Hinton. “Deep learning.” Nature 521 (2015): 436–444.", ["LeCun", "Bengio", "Hinton"]),
        ("Dettmers, Tim and Mike Lewis. “LLM.int8().” In NeurIPS, 2022.", ["Dettmers", "Lewis"]),
        ("van der Meer, Jan, and Sean O'Neil. “A title.” Neural Computation 3, no. 2 (2021): 1–22.", ["van der Meer", "O'Neil"]),
        ("María José de la Cruz and John Smith. 2022. A title. Neural Computation 3, 2 (2022), 1–22.", ["de la Cruz", "Smith"]),
        ("Müller-Lüdenscheidt H-J, Nguyễn VA. A title. Neural Computation. 2023;66(4):44–51.", ["Müller-Lüdenscheidt", "Nguyễn"]),
    ],
)  # fmt: skip
def test_names_keep_their_parts(text, families):
    assert [one["family"] for one in parse_reference(text).authors] == families


def test_a_forge_is_no_journal():
    found = parse_reference(
        "NVIDIA Corporation. TensorRT-LLM. GitHub repository, https://github.com/NVIDIA/TensorRT-LLM (2023)."
    )
    assert (found.title, found.kind) == ("TensorRT-LLM", "software")
