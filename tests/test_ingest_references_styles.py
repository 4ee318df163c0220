"""Kinds of reference strings that used to be read wrong, one table per kind. Expected values are read off by eye."""

import pytest

from ingest.names import split_given_first
from ingest.references import parse_reference


def families(text):
    return [one["family"] for one in parse_reference(text).authors]


@pytest.mark.parametrize(
    "text",
    [
        "Martin L. King, Jr. and Sammy Davis III. Deep part III. In ICML, pages 1–6, 2020.",
        "Martin L. King Jr. and Sammy Davis III. 2020. Deep part III. In ICML. 1–6.",
        "M. L. King Jr. and S. Davis III, “Deep part III,” in ICML, 2020, pp. 1–6.",
        "King, M. L., Jr., & Davis, S., III (2020). Deep part III. In ICML (pp. 1–6).",
        "King, M. L., Jr. and Davis, S., III. Deep part III. In ICML, pp. 1–6, 2020.",
        "4. King, M. L., Jr., Davis, S., III: Deep part III. In: ICML, pp. 1–6 (2020)",
        "4. King ML Jr., Davis S III. Deep part III. In: ICML. 2020. p. 1–6.",
    ],
)
def test_a_suffix_belongs_to_no_title_and_is_no_author(text):
    found = parse_reference(text)
    assert (found.title, found.year) == ("Deep part III", 2020)
    assert families(text) == ["King", "Davis"]


TRUST = "“Why should I trust you?”: Explaining the predictions of any classifier"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (f"M. T. Ribeiro, S. Singh, and C. Guestrin, “{TRUST},” in KDD, 2016, pp. 1135–1144.", TRUST),
        (f"M. T. Ribeiro and S. Singh, ``{TRUST},'' in KDD, 2016, pp. 1135–1144.", TRUST),
        (f"Marco Ribeiro, Sameer Singh, and Carlos Guestrin. {TRUST}. In KDD, 2016.", TRUST),
        (f"Ribeiro, M. T., Singh, S., & Guestrin, C. (2016). {TRUST}. In KDD (pp. 1135–1144). ACM.", TRUST),
        (f"Marco Ribeiro, Sameer Singh, and Carlos Guestrin. 2016. {TRUST}. In KDD. 1135–1144.", TRUST),
        (f"Ribeiro, M.T., Singh, S., Guestrin, C.: {TRUST}. In: KDD, pp. 1135–1144 (2016)", TRUST),
        ("M. Ribeiro. “Why trust you?” Explaining the predictions of any classifier. In KDD, 2016.", "“Why trust you?” Explaining the predictions of any classifier"),
        ("M. Ribeiro, “Why trust you?” in KDD, 2016.", "Why trust you?"),
        ("Ribeiro, Marco. “Why trust you?” Journal of Explaining 3.2 (2016): 1–9.", "Why trust you?"),
    ],
)  # fmt: skip
def test_a_quotation_that_opens_a_title_does_not_close_it(text, title):
    assert parse_reference(text).title == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Tri Dao. Stop! In the name of speed. arXiv preprint arXiv:1910.01108, 2020.", "Stop! In the name of speed"),
        ("Dao, T. (2020). Stop! In the name of speed. Neural Computation, 24(9), 4207–4210.", "Stop! In the name of speed"),
        ("Tri Dao. Is it fast? In Low-Power Computer Vision, pages 291–326. CRC Press, 2020.", "Is it fast?"),
        ("Tri Dao. 2020. Is it fast? In Low-Power Computer Vision. Chapman and Hall/CRC, 291–326.", "Is it fast?"),
        ("Tri Dao. Is it fast? Inference at the edge. arXiv preprint arXiv:1910.01108, 2020.", "Is it fast? Inference at the edge"),
        ("Tri Dao. Is it fast? PhD thesis, Stanford University, 2020.", "Is it fast?"),
        ("Tri Dao. Is it fast?! Technical Report TR-2009, University of Toronto, 2020.", "Is it fast?!"),
        ("Tri Dao. Footprints of A100s, etc. Cambridge University Press, 2nd edition, 2019.", "Footprints of A100s, etc"),
        ("Tri Dao. Footprints of A100s, etc. Preprint at http://arxiv.org/abs/2402.17764 (2016).", "Footprints of A100s, etc"),
        ("Dao, T. Carbon of the U.S. Power Grid. TR-9. University of Toronto, 2024.", "Carbon of the U.S. Power Grid"),
        ("Dao, T. Learning in the U.S. Neural Computation, 9(8):1735–1780, 2024. doi: 10.1/x.", "Learning in the U.S"),
        ("Dao, T. (2020). The law of the E.U. 2023 Conference on Law (CL), 1–6. https://doi.org/10.1109/x", "The law of the E.U"),
        ("Lin, J., et al. What Does It Tell Us?. 2023. Stanford University, PhD thesis.", "What Does It Tell Us?"),
        ("Tri Dao. Footprints of A100s, etc. In NeurIPS 2023 Workshop on Carbon, 2023.", "Footprints of A100s, etc"),
    ],
)  # fmt: skip
def test_a_venue_ends_a_title_and_a_sentence_does_not(text, title):
    assert parse_reference(text).title == title


@pytest.mark.parametrize(
    ("text", "title", "names", "year"),
    [
        ("Tri Dao. Fast: it works. In Proceedings of the 29th Symposium, pages 611–626, 2017. ACM. doi: 10.1145/3600006.3613165.", "Fast: it works", ["Dao"], 2017),
        ("T. Dao and C. Ré. Fast kernels. In International Conference on Machine Learning, pages 1–9, 2021. PMLR.", "Fast kernels", ["Dao", "Ré"], 2021),
        ("Tri Dao. 2021. Fast kernels. In International Conference on Machine Learning. PMLR, 1–9.", "Fast kernels", ["Dao"], 2021),
        ("Kolter JZ, LeCun Y. To be or not to be: fast. 2016. https://doi.org/10.48550/arXiv.2001.08361.", "To be or not to be: fast", ["Kolter", "LeCun"], 2016),
        ("Tri Dao. Fast. Biometrics, 55(2):305–320, 1998. doi: 10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2.", "Fast", ["Dao"], 1998),
    ],
)  # fmt: skip
def test_a_year_behind_the_venue_is_not_the_one_behind_the_authors(text, title, names, year):
    found = parse_reference(text)
    assert (found.title, found.year) == (title, year)
    assert families(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("J. Zico Kolter, Zachary DeVito, and Yann LeCun. Deep things. In ICML, 2021.", ["Kolter", "DeVito", "LeCun"]),
        ("P. Patel, Íñigo Goiri, and R. Bianchini. Deep things. In ICML, 2021.", ["Patel", "Goiri", "Bianchini"]),
        ("I. Goodfellow, Y. Bengio, and A. Courville, Deep Learning. MIT Press, 2016.", ["Goodfellow", "Bengio", "Courville"]),
        ("Baker, A., Clark, B., … Lopez, L. (2020). Deep things. Nature, 521, 436–444.", ["Baker", "Clark", "Lopez"]),
        ("Tom Van Der Weide and Ana De La Cruz. Deep things. In ICML, 2021.", ["Van Der Weide", "De La Cruz"]),
        ("S. Ó Briain and C. De Sa. Deep things. In ICML, 2021.", ["Ó Briain", "De Sa"]),
    ],
)  # fmt: skip
def test_names_in_mixed_lists(text, names):
    assert families(text) == names


def test_two_words_behind_an_initial():
    """Among spelt-out names the first of them is a given name, among initials both are the family's."""
    spelt_out = split_given_first("J. Zico Kolter and Zachary DeVito").names
    assert spelt_out[0] == {"family": "Kolter", "given": "J. Zico"}
    initials = split_given_first("G. García Márquez and Z. DeVito").names
    assert initials[0] == {"family": "García Márquez", "given": "G."}


def test_authors_left_out_in_the_middle_are_said():
    assert parse_reference(
        "Brown, T. B., Mann, B., ... & Amodei, D. (2020). Deep things. Nature, 521, 1–9."
    ).et_al
    assert parse_reference("Baker, A., … Lopez, L. (2020). Deep things. Nature, 521, 436–444.").et_al


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hu, E., & Shen, Y. (2021). Fast kernels for all (arXiv:2106.09685). arXiv. https://doi.org/10.48550/arXiv.2106.09685", "Fast kernels for all"),
        ("Hu, E., & Shen, Y. (2021). Fast kernels for all [PhD thesis]. Stanford University.", "Fast kernels for all"),
        ("Hu, E., & Shen, Y. (2021). Fast kernels for all [Doctoral dissertation, Stanford University].", "Fast kernels for all"),
        ("Hu, E., & Shen, Y. (2021). Fast kernels for all (Technical Report No. TR-2009). University of Toronto.", "Fast kernels for all"),
        ("Hu, E., & Shen, Y. (2021). Fast kernels for all (No. TR-2009). University of Toronto.", "Fast kernels for all"),
        ("Hu, E., Shen, Y., 2021. Fast kernels for all [WWW Document]. URL https://example.org/x (accessed 3.11.24).", "Fast kernels for all"),
        ("Hu, E., Shen, Y., 2021. Fast kernels for all, in: Proceedings of Things. ACM, pp. 1–6.", "Fast kernels for all"),
        ("11. Hu, E., Shen, Y.: Fast kernels for all, https://example.org/x, last accessed 2024/03/11.", "Fast kernels for all"),
        ("11. Hu, E., Shen, Y. Fast kernels for all. in 2023 Conference on Things 1–6 (IEEE, 2023). doi:10.1109/X.2023.1.", "Fast kernels for all"),
        ("11. Hu, E. & Shen, Y. Fast kernels for all. in Findings of Things: EMNLP 2023 14–25 (2023). doi:10.18653/v1/x.", "Fast kernels for all"),
        ("[1] E.J. Hu, Y. Shen, Fast kernels for all, (2021). https://doi.org/10.48550/arXiv.2106.09685.", "Fast kernels for all"),
        ("[1] E.J. Hu, Y. Shen, Fast kernels for all, PhD thesis, Stanford University, 2021.", "Fast kernels for all"),
        ("[1] E.J. Hu, Y. Shen, et al., Fast kernels for all, Neural Computation 9 (8) (2021) 1735–1780.", "Fast kernels for all"),
        ("[1] E. J. Hu and Y. Shen, In Search of Kernels, Neural Computation 9, 1735 (2021).", "In Search of Kernels"),
        ("[1] E. J. Hu and Y. Shen, Fast kernels for all, in 2023 Conference on Things (IEEE, 2023), pp. 1–6.", "Fast kernels for all"),
        # brackets, commas and colons that are the title's own
        ("Hu, E., & Shen, Y. (2021). Attention (in)efficiency: a report (revisited). Nature, 521, 436–444.", "Attention (in)efficiency: a report (revisited)"),
        ("E. Hu and Y. Shen. Fast, cheap, in parallel: pick two. In ICML, pages 1–6, 2021.", "Fast, cheap, in parallel: pick two"),
    ],
)  # fmt: skip
def test_neither_venue_nor_type_stays_in_the_title(text, title):
    found = parse_reference(text)
    assert found.title == title
    assert [one["family"] for one in found.authors] == ["Hu", "Shen"]


@pytest.mark.parametrize(
    ("text", "author", "title", "year"),
    [
        ("12. OpenAI: GPT-4 technical report. arXiv preprint arXiv:2303.08774 (2023)", "OpenAI", "GPT-4 technical report", 2023),
        ("12. BigScience Workshop: Bloom: an open model. arXiv preprint arXiv:2211.05100 (2022)", "BigScience Workshop", "Bloom: an open model", 2022),
        ("[12] vLLM Team, Master the GPU, IEEE Micro 43 (2021) 44–51.", "vLLM Team", "Master the GPU", 2021),
        ("[12] DeepSeek-AI, How to train: 3 lessons, 2 myths, IEEE Micro 43 (2) (2024) 44–51.", "DeepSeek-AI", "How to train: 3 lessons, 2 myths", 2024),
        ("NVIDIA, The road to 2030: a decade, 2nd ed. Cambridge University Press, 2019.", "NVIDIA", "The road to 2030: a decade", 2019),
    ],
)  # fmt: skip
def test_an_organisation_in_the_place_of_the_authors(text, author, title, year):
    found = parse_reference(text)
    assert ([one["family"] for one in found.authors], found.title, found.year) == ([author], title, year)


@pytest.mark.parametrize(
    "text",
    [
        "FlashKernels: Fast and exact things. https://github.com/example/flash, 2023.",
        "FlashKernels: Fast and exact things. https://github.com/example/flash (2023), accessed: 2024-03-11.",
    ],
)
def test_a_name_before_a_colon_is_no_author_where_only_an_address_follows(text):
    found = parse_reference(text)
    assert (found.title, found.authors) == ("FlashKernels: Fast and exact things", ())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Le, Q. V., and Y. Ma. 2019. “Deep things.” Nature 521: 436–444.", ["Le", "Ma"]),
        ("Le, Q. V., R. T. McCoy, and Y. Ma. Deep Things. MIT Press, 2006.", ["Le", "McCoy", "Ma"]),
        ("van der Berg, J., and L. van Beethoven. Deep Things: A Study. 2017. Stanford University, PhD thesis.", ["van der Berg", "van Beethoven"]),
        ("JOUPPI, Norman P. and PATTERSON, David, 2019. Deep things. Neural Computation. 2019. Vol. 9, no. 8, p. 1–9.", ["JOUPPI", "PATTERSON"]),
        ("Ramesh, A.; Pavlov, M.; Goh, G. Deep things. J. Mach. Learn. Res. 2022, 23, 1–40.", ["Ramesh", "Pavlov", "Goh"]),
        ("Chen, M. and Ma, Y. (2021) ‘Deep things’, Journal of Things, 12(3), pp. 1–9.", ["Chen", "Ma"]),
        ("Chen, M. et al. (2021) 'Deep things', arXiv preprint arXiv:2107.03374.", ["Chen"]),
        ("LeCun Y., Bengio Y., Hinton G. E. Deep things. Nature, 521:436–444, 2015.", ["LeCun", "Bengio", "Hinton"]),
        ("Kaiser Ł, Şahin Ö. Deep things. Neural Computation. 2023;66(4):44–51.", ["Kaiser", "Şahin"]),
        ("Lin J, Tang J, Han S. Transformers. 2019. Accessed March 11, 2024. https://example.org/x", ["Lin", "Tang", "Han"]),
    ],
)  # fmt: skip
def test_families_in_every_order(text, names):
    assert families(text) == names
    assert parse_reference(text).title.startswith(("Deep", "Transformers"))


@pytest.mark.parametrize(
    ("text", "names", "title"),
    [
        ("OpenAI, Josh Achiam, Steven Adler, and Barret Zoph. Gpt-4 technical report. arXiv preprint arXiv:2303.08774, 2023.", ["OpenAI", "Achiam", "Adler", "Zoph"], "Gpt-4 technical report"),
        ("DeepSeek-AI, Daya Guo, Dejian Yang, et al. Deepseek-r1: Reasoning. arXiv preprint arXiv:2501.12948, 2025.", ["DeepSeek-AI", "Guo", "Yang"], "Deepseek-r1: Reasoning"),
        ("Gemma Team, T. Mesnard, and C. Hardin. Gemma: Open models. arXiv preprint arXiv:2403.08295, 2024.", ["Gemma Team", "Mesnard", "Hardin"], "Gemma: Open models"),
        ("Yann LeCun, Yoshua Bengio, and Geoffrey Hinton. Deep learning. Nature, 521(3):436–444, 2015.", ["LeCun", "Bengio", "Hinton"], "Deep learning"),
    ],
)  # fmt: skip
def test_an_organisation_among_people(text, names, title):
    assert (families(text), parse_reference(text).title) == (names, title)


def test_letters_spelt_by_latex_and_html():
    found = parse_reference(r"Christopher R{\'e} and J{\"u}rgen {\O}st. R\'eseaux {GPU}. In ICML, 2021.")
    assert [one["family"] for one in found.authors] == ["Ré", "Øst"]
    assert found.title == "Réseaux {GPU}"
    found = parse_reference(
        "Christopher R&eacute; and S. O&#x27;Neil. 2021. Fast &amp; cheap. In ICML. 611&#8211;626."
    )
    assert [one["family"] for one in found.authors] == ["Ré", "O'Neil"]
    assert (found.title, found.pages) == ("Fast & cheap", "611–626")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Hu, E., Shen, Y., 2021. Fast kernels for all [WWW Document]. URL https://github.com/example/fast (accessed 3.11.24).", "software"),
        ("1. Hu E, Shen Y. Fast kernels for all. 2021 [cited 11 Mar 2024]. Available: https://example.org/fast", "website"),
        ("11. Hu, E., Shen, Y.: Fast kernels for all, https://github.com/example/fast, last accessed 2024/03/11.", "software"),
        ("Hu, E., & Shen, Y. (2021). Fast kernels for all (No. TR-2009). University of Toronto.", "paper"),
    ],
)  # fmt: skip
def test_a_date_of_access_is_no_venue(text, kind):
    found = parse_reference(text)
    assert (found.title, found.kind) == ("Fast kernels for all", kind)


@pytest.mark.parametrize(
    ("text", "venue"),
    [
        ("[1] Y. Bengio, P. Simard, Deep things, IEEE Trans. Neural Netw. 5 (2) (1994) 157–166.", "IEEE Trans. Neural Netw"),
        ("[1] X. Ma, G. Fang, Deep things, Advances in neural information processing systems 36 (2023) 21702–21720.", "Advances in neural information processing systems"),
        ("N. Jouppi et al., “Deep things,” in Proc. Int. Symp. Comput. Archit. (ISCA), Jun. 2021, pp. 1–14.", "Proc. Int. Symp. Comput. Archit. (ISCA)"),
        ("Zhang, S. et al. Deep things. Preprint at https://arxiv.org/abs/2205.01068 (2022).", "arXiv"),
    ],
)  # fmt: skip
def test_venues_without_volume_month_and_address(text, venue):
    found = parse_reference(text)
    assert (found.title, found.venue) == ("Deep things", venue)


@pytest.mark.parametrize(
    ("text", "author", "kind"),
    [
        ("OpenAI. GPT-4 technical report, 2023.", "OpenAI", "paper"),
        ("Radford, A. (2019). Deep things. OpenAI blog, 1(8), 9.", "Radford", "paper"),
        ("Meta AI. Introducing Meta Llama 3. April 2024. URL https://ai.meta.com/blog/meta-llama-3/.", "Meta AI", "website"),
        ("Hugging Face. 2023. Text Generation Inference. https://github.com/huggingface/text-generation-inference", "Hugging Face", "software"),
    ],
)  # fmt: skip
def test_companies_of_two_words_and_their_reports(text, author, kind):
    found = parse_reference(text)
    assert ([one["family"] for one in found.authors], found.kind) == ([author], kind)


def test_a_year_between_the_word_arxiv_and_its_number():
    found = parse_reference("Ramesh, A.; Goh, G. Deep things. arXiv 2021, arXiv:2102.12092.")
    assert (found.title, found.year, found.arxiv_id, found.venue) == (
        "Deep things",
        2021,
        "2102.12092",
        "arXiv",
    )
