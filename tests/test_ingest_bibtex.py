"""BibTeX and biblatex, with LaTeX in their fields: grammar, names, identifiers, dates, and what people leave out."""

import pytest

from ingest.latex import to_text
from ingest.records import BrokenRecord
from ingest.references import Reference
from ingest.sources.bibtex import parse_bibtex
from kb.export_bibtex import escape


def bibtex(text):
    return list(parse_bibtex(text.splitlines(keepends=True)))


def families(reference):
    return [author["family"] for author in reference.authors]


@pytest.mark.parametrize(
    "latex, text",
    [
        (r"Mart{\'\i}n", "Martín"), (r"Gr{\=u}z{\=i}tis", "Grūzītis"), (r"Ljube{\v s}i{\'c}", "Ljubešić"), (r"\^{i}le", "île"),
        (r"\'{E}cole", "École"), (r"\'Ecole", "École"), (r'G{\"o}del', "Gödel"), (r"G\"odel", "Gödel"), (r"{\O}rsted", "Ørsted"),
        (r"Stra{\ss}e", "Straße"), (r"\ss{}a", "ßa"), (r"\c{C}elik", "Çelik"), (r"Dvo{\v{r}}{\'a}k", "Dvořák"), (r"\r{A}ngstr", "Ångstr"),
        (r"\H{o}", "ő"), (r"\k{a}", "ą"), (r"\.{z}", "ż"), (r"\d{a}", "ạ"), (r"\u{g}", "ğ"), (r"{\L}ukasz", "Łukasz"), (r"{\AE}", "Æ"),
        (r"\~{n}", "ñ"), (r"{\'{\i}}", "í"), (r"\`a", "à"), (r"A \& B", "A & B"), (r"90\% of \$5 \#1 a\_b \{x\}", "90% of $5 #1 a_b {x}"),
        (r"Computing in Science {\&} Engineering", "Computing in Science & Engineering"), (r"\emph{fast} \textbf{x}", "fast x"),
        (r"{\em fast} x", "fast x"), (r"pages 1--2---3", "pages 1–2—3"), (r"``so''", "“so”"), ("a~b", "a b"), (r"\LaTeX{} rocks", "LaTeX rocks"),
        (r"H$_2$O", "H2O"), (r"$\alpha$-$\beta$ pruning", "α-β pruning"), (r"costs $5 or \$6", "costs $5 or $6"), ("{LLM}.int8()", "LLM.int8()"),
        (r"\href{https://x.y/z}{text}", "text"), (r"\unknown{kept}", "kept"), ("100% sure", "100% sure"), ("\\", "\\"), ("{", ""), ("}{", ""),
        (r"\'", ""), (r"\v", ""), ("$", "$"), (r"\textsuperscript{2}", "2"), ("e\u0301", "é"), (r"\(x^2\)", "x2"), (r"\o", "ø"), (r"\i", "ı"),
    ],
)  # fmt: skip
def test_latex_to_text(latex, text):
    assert to_text(latex) == text


@pytest.mark.parametrize(
    "text", ["A & B 100% of x_1 #2", "$5 {x} ~ ^ \\ end", "Größe – “quoted”", "C++ & C#", "a\\b"]
)
def test_escaping_is_undone_by_reading(text):
    assert to_text(escape(text)) == text


def test_bibtex_strings_concatenation_months():
    found = bibtex('@string{acl = "Proc. of " # "ACL"}\n@STRING(ed = {2nd})\n'
                   '@article{a, title = {T}, journal = acl # " 2024", month = mar # "~12", year = 2024, edition = ed}')  # fmt: skip
    assert (found[0].venue, found[0].date, found[0].edition) == ("Proc. of ACL 2024", "2024-03-12", "2nd")


@pytest.mark.parametrize(
    "author, expected, et_al",
    [
        ("Kwon, Woosuk and Li, Zhuohan", ["Kwon", "Li"], False),
        ("Woosuk Kwon and Zhuohan Li and others", ["Kwon", "Li"], True),
        ("van der Berg, Jan and Ludwig van Beethoven", ["van der Berg", "van Beethoven"], False),
        ("{OpenAI Team} and {Barnes and Noble, Inc.}", ["OpenAI Team", "Barnes and Noble, Inc."], False),
        ("King, Jr., Martin Luther", ["King"], False),
        (r"Mart{\'\i}n, Jos{\'e} and {\'E}mile Zola", ["Martín", "Zola"], False),
        ("al-Hakim, A. and ’s-Gravesande, W.", ["al-Hakim", "’s-Gravesande"], False),
        ("A and\n   B\n AND C", ["A", "B", "C"], False),
        ("Anderson, Sandy and Band, Andy", ["Anderson", "Band"], False),
        ("Agrawal, A. and  and Ramjee, R. and ", ["Agrawal", "Ramjee"], False),
        ("{van der Berg}, Jan", ["van der Berg"], False),
        ("de las Casas, Diego", ["de las Casas"], False),
    ],
)  # fmt: skip
def test_bibtex_names(author, expected, et_al):
    reference = bibtex(f"@misc{{k, title = {{T}}, author = {{{author}}}}}")[0]
    assert families(reference) == expected
    assert reference.et_al is et_al


@pytest.mark.parametrize(
    "entry, title",
    [
        ('@article{k, title = "The {"}quoted{"} word", year = 2020}', 'The "quoted" word'),
        (r'@article{k, title = "G\"odel, Escher", year = 2020}', "Gödel, Escher"),
        ("@article(k, title = {In parentheses}, year = 2020)", "In parentheses"),
        ("@article{k, title = {Nested {deep{er}} braces}, year = 2020,}", "Nested deeper braces"),
        ('@article{k, title = "No comma"\n year = {2020}}', "No comma"),
        ("@ARTICLE { k , TITLE = {Spaces and capitals} , Year = 2020 }", "Spaces and capitals"),
        ("@article{, title = {Empty key}, year = 2020}", "Empty key"),
        ("@article{title = {No key}, year = 2020}", "No key"),
        ("@article{k, title = {Not closed}, year = {2020}\n", "Not closed"),
        ("% comment\nfree text @ home\n@article{k, title = {After text}, year = 2020}", "After text"),
        ("@comment{x}@article{k, title = {After comment}, year=2020}", "After comment"),
        ("@article{k, title = {Over\n   two   lines}, year = 2020}", "Over two lines"),
        ("@article{k, title = {x}, title = {second is ignored}, year = 2020}", "x"),
        ("@article{k:a/b+c-d_e.f, title = {Odd key}, year = 2020}", "Odd key"),
        ("@article{k, title = {A @ sign}, year = 2020}", "A @ sign"),
        (r"@article{k, title = {A \{ brace}, year = 2020}", "A { brace"),
        ("@article{k, title = {{Double braced}}, year = 2020}", "Double braced"),
        ("@article{k, title = {Sub}, subtitle = {Title}, year = 2020}", "Sub: Title"),
    ],
)  # fmt: skip
def test_bibtex_forms(entry, title):
    found = bibtex(entry)
    assert [r.title for r in found if isinstance(r, Reference)] == [title]
    assert found[0].year == 2020


def test_bibtex_broken_entries_do_not_stop_the_rest():
    found = bibtex(
        "@article{one, title={One}, year=2001}\n@article{bad1, title = {never closed, year = 2002\n}\n"
        '@article{two, title={Two}, year=2003}\n@article{bad2, title = "unclosed, year = 2004}\n'
        "@misc{bad3}\n@article{bad4, = {x}}\n@article{three, title={Three}, year=2005}\n@article{bad5, title ="
    )
    assert [r.key for r in found if isinstance(r, Reference)] == ["one", "two", "three"]
    broken = [r for r in found if isinstance(r, BrokenRecord)]
    assert [b.locator.split()[0] for b in broken] == ["bad1", "bad2", "bad3", "bad4", "bad5"]
    assert all(b.reason and b.excerpt for b in broken)


def test_bibtex_one_key_twice_gives_two_records():
    found = bibtex("@misc{a, title={One}}\n@misc{a, title={Two}}\n")
    assert [(r.key, r.title) for r in found] == [("a", "One"), ("a#2", "Two")]


def test_bibtex_formulas_stay_in_the_title_and_read_plainly():
    reference = bibtex(r"@misc{k, title = {Can the Measure of {$\cup^n_1 [a_i,b_i]$} be Computed}}")[0]
    assert r"$\cup^n_1 [a_i,b_i]$" in reference.title
    assert "$" not in reference.plain_title and "be Computed" in reference.plain_title


@pytest.mark.parametrize(
    "fields, arxiv, doi",
    [
        ("eprint = {2309.06180}, archivePrefix = {arXiv}", "2309.06180", None),
        ("eprint = {2309.06180v2}, eprinttype = {arxiv}", "2309.06180", None),
        ("journal = {arXiv preprint arXiv:2309.06180}", "2309.06180", None),
        ("journal = {CoRR}, volume = {abs/2309.06180}", "2309.06180", None),
        ("doi = {10.48550/arXiv.2309.06180}", "2309.06180", None),
        ("url = {https://arxiv.org/abs/2309.06180}", "2309.06180", None),
        ("doi = {https://doi.org/10.1145/3600006.3613165}", None, "10.1145/3600006.3613165"),
        (r"doi = {10.1007/978-3-030-1\_2}", None, "10.1007/978-3-030-1_2"),
        ("eprint = {hep-th/9711200}, archiveprefix = {arXiv}", "hep-th/9711200", None),
        ("howpublished = {arXiv:2309.06180}", "2309.06180", None),
    ],
)  # fmt: skip
def test_bibtex_identifiers(fields, arxiv, doi):
    reference = bibtex(f"@misc{{k, title = {{T}}, {fields}}}")[0]
    assert (reference.arxiv_id, reference.doi) == (arxiv, doi)


@pytest.mark.parametrize(
    "fields, date",
    [("year = 2016, month = oct", "2016-10"), ("year = {2016}, month = 10", "2016-10"), ("date = {2016-10-05}", "2016-10-05"),
     ("date = {2016-10/2017-02}", "2016-10"), ("year = {(2016)}", "2016"), ("year = {in press}", ""), ("month = oct", ""),
     ("year = 2016, month = {October}", "2016-10"), ("year = {c2016}", "2016")],
)  # fmt: skip
def test_bibtex_dates(fields, date):
    reference = bibtex(f"@misc{{k, title = {{T}}, {fields}}}")[0]
    assert reference.date == date and reference.year == (int(date[:4]) if date else None)


def test_bibtex_links_keep_their_characters():
    reference = bibtex(r"@online{k, title = {T}, url = {https://h.org/x\_y?a=b&c=%20d}}")[0]
    assert reference.url == "https://h.org/x_y?a=b&c=%20d"
    assert (
        bibtex(r"@misc{k, title = {T}, howpublished = {\url{https://github.com/a/b_c}}}")[0].kind
        == "software"
    )


PROCEEDINGS = "@proceedings{P, title = {Proc. of X}, subtitle = {Part 2}, year = 2001, month = may, editor = {Ed Itor}, publisher = {ACM}, doi = {10.1000/p}}\n"


@pytest.mark.parametrize("parent_first", [True, False])
def test_bibtex_crossref_inherits_what_belongs_to_the_whole(parent_first):
    child = "@inproceedings{a, crossref = {p}, title = {One}, author = {Bee, Ann}, pages = {1--9}}\n"
    found = bibtex(PROCEEDINGS + child if parent_first else child + PROCEEDINGS)
    one = next(r for r in found if r.key == "a")
    assert (one.title, one.venue, one.year, one.date, one.publisher) == (
        "One",
        "Proc. of X: Part 2",
        2001,
        "2001-05",
        "ACM",
    )
    assert (families(one), one.doi, one.pages) == (["Bee"], None, "1–9")
    assert len(found) == 2 and next(r for r in found if r.key == "P").kind == "book"


def test_bibtex_a_parts_own_fields_win_and_a_missing_parent_is_noted():
    one, two = bibtex(
        "@inproceedings{a, crossref={gone}, title={One}, year=1999}\n@inbook{b, title={Two}, crossref={b}, year=2000}\n"
    )
    assert (one.year, two.year) == (1999, 2000) and "gone" in one.notes[0]
    found = bibtex(
        "@book{k, title={Whole}, author={Author, A.}, year=2001, date={2001-02}}\n@inbook{c, title={Part}, crossref={k}, year=1990}"
    )
    assert (found[1].venue, families(found[1]), found[1].date) == ("Whole", ["Author"], "1990")


def test_bibtex_xdata_chains_and_is_no_work():
    found = bibtex(
        "@article{a, title={T}, xdata={one, two}}\n@xdata{one, xdata={three}, journal={J}}\n@xdata{two, volume=7}\n@xdata{three, year=2020}\n"
    )
    assert [(r.title, r.venue, r.volume, r.year) for r in found] == [("T", "J", "7", 2020)]


@pytest.mark.parametrize(
    "text, titles",
    [
        ("@article{a,\n  title={One}, % the title\n  % year = 1999,\n  year=2001}\n", ["One"]),
        ("@article{a, % first\n title = % here\n {One} % done\n}", ["One"]),
        ("% @article{z,\n%   title = {Hidden}\n% }\n@article{a, title={One}}", ["One"]),
        ("% @article{z, title={Hidden}}\n@article{a, title={One}}", ["One"]),
        ("@comment{ @article{z, title={Hidden}} }\n@article{a, title={One}}", ["One"]),
        ("@misc{a\n title={One}, year=2001}", ["One"]),
        ("@misc{a title={One}, year=2001}", ["One"]),
        ("@misc{smith (2020), title={One}}", ["One"]),
        ("@misc{a, title={One}; year=2001}", ["One"]),
        ("@misc{o'neil \"x\" #1, title={One}}", ["One"]),
        ("@article{a, title={One}}, year=2001}\n@article{b, title={Two}}\n", ["One", "Two"]),
        ("@article{a, title={One},\n abstract={mail\n  @foo{x} inside\n}, year=2001}\n@misc{b,title={Two}}", ["One", "Two"]),
        ("@misc{a, title={Science {\\&}amp; <i>E. coli</i>}}", ["Science & E. coli"]),
        ("@string{a = \"A\"}\n@string{b = a # { } # \"B\"}\n@misc{k, title = b # { of } # a}", ["A B of A"]),
        ("@misc{k, title = {100% of %it}}", ["100% of %it"]),
    ],
)  # fmt: skip
def test_bibtex_comments_and_what_is_left_out(text, titles):
    assert [r.title for r in bibtex(text)] == titles


@pytest.mark.parametrize(
    "author, names",
    [
        ("family=Berg, given=Jan, prefix={van der}, suffix=Jr. and Doe, J.", ["van der Berg|Jan|Jr.", "Doe|J.|"]),
        ("Smith, J.; Doe, A.", ["Smith|J.|", "Doe|A.|"]),
        ("Jane Smith; Ann Doe and Bob Roe", ["Smith|Jane|", "Doe|Ann|", "Roe|Bob|"]),
        ("Smith, J., Doe, A., Roe, B.", ["Smith|J.|", "Doe|A.|", "Roe|B.|"]),
        ("Jane Smith, Ann Doe, Bob Roe", ["Smith|Jane|", "Doe|Ann|", "Roe|Bob|"]),
        ("A. Radford, I. Sutskever", ["Radford|A.|", "Sutskever|I.|"]),
        (r"Smith, J. \& Doe, A.", ["Smith|J.|", "Doe|A.|"]),
        (r"AT\&T Labs and {Barnes \& Noble}", ["AT&T Labs||", "Barnes & Noble||"]),
        ("King, Jr., Martin Luther", ["King|Martin Luther|Jr."]),
        ("King, Martin Luther, III", ["King|Martin Luther|III"]),
        ("Martin Luther King Jr.", ["King|Martin Luther|Jr."]),
        ("Acme, Inc. and Doe, J.", ["Acme, Inc.||", "Doe|J.|"]),
        ("{Smith, J. and Doe, A.}", ["Smith|J.|", "Doe|A.|"]),
        ("{Jane Smith and Ann Doe}", ["Smith|Jane|", "Doe|Ann|"]),
        ("{Barnes and Noble, Inc.}", ["Barnes and Noble, Inc.||"]),
        ("Gemini Team", ["Gemini Team||"]),
        ("Doe J, Roe RA", ["Doe|J|", "Roe|RA|"]),
        (r"Jean-Baptiste {L\^e Bihan}", ["Lê Bihan|Jean-Baptiste|"]),
        (r"{\relax Ch}arles, D. and L\'opez y Vega, R.", ["Charles|D.|", "López y Vega|R.|"]),
        ("M&uuml;ller, J{\\\"o}rg", ["Müller|Jörg|"]),
    ],
)  # fmt: skip
def test_bibtex_author_lists_of_all_kinds(author, names):
    (reference,) = bibtex(f"@misc{{k, title = {{T}}, author = {{{author}}}}}")
    assert [
        "|".join((one["family"], one.get("given", ""), one.get("suffix", ""))) for one in reference.authors
    ] == names


@pytest.mark.parametrize(
    "ending", ["Doe, J. and others", "Doe, J. et al.", "Doe, J. and et al", "Doe, J. and {others}"]
)
def test_bibtex_cut_lists(ending):
    (reference,) = bibtex(f"@misc{{k, title = {{T}}, author = {{{ending}}}}}")
    assert families(reference) == (["Doe"] if "{" not in ending else ["Doe", "others"])
    assert reference.et_al is ("{" not in ending)


@pytest.mark.parametrize(
    "fields, expected",
    [
        (r"note = {See \url{https://github.com/x/y_z}.}", {"url": "https://github.com/x/y_z", "kind": "software"}),
        (r"howpublished = {\href{https://x.org/blog/a}{here}}", {"url": "https://x.org/blog/a", "kind": "website", "venue": ""}),
        ("note = {at https://x.org/a, seen 2020}", {"url": "https://x.org/a"}),
        (r"howpublished = {\url{x.org/a}}", {"url": "https://x.org/a"}),
        ("howpublished = {arXiv preprint arXiv:2305.12345v2}", {"venue": "arXiv", "arxiv_id": "2305.12345", "arxiv_version": 2}),
        ("journal = {CoRR}, volume = {abs/2305.12345}", {"venue": "arXiv", "arxiv_id": "2305.12345"}),
        ("howpublished = {Blog post}, url = {https://x.org/a}", {"venue": "", "kind": "website"}),
        ("eprint = {2305.12345}, archiveprefix = {arXiv}, version = {3}", {"arxiv_version": 3}),
        ("eprint = {0508053}, archiveprefix = {arXiv}, primaryclass = {cs}", {"arxiv_id": "cs/0508053"}),
        ("journal = {arXiv e-prints}, pages = {arXiv:2305.12345}", {"venue": "arXiv", "arxiv_id": "2305.12345", "pages": ""}),
        ("institution = {arXiv}, number = {2305.12345}", {"arxiv_id": "2305.12345"}),
        ("journal = {arXiv:2305.12345 [cs, stat]}", {"venue": "arXiv", "arxiv_id": "2305.12345"}),
        ("journal = {Computing Research Repository}, volume = {abs/2305.12345}", {"venue": "arXiv", "arxiv_id": "2305.12345"}),
        ("eprint = {2305123}, eprinttype = {pubmed}", {"arxiv_id": None}),
        ("date = {15.03.2021}", {"date": "2021-03-15"}),
        ("date = {2020-02-30}", {"date": "2020-02"}),
        ("note = {doi: 10.1000/x.y}", {"doi": "10.1000/x.y"}),
        ("entrysubtype = {product}, url = {https://x.org/a}", {"kind": "product"}),
        ("year = 2020, month = {10~} # jan", {"date": "2020-01-10"}),
        ("year = 2020, month = 3, day = 9", {"date": "2020-03-09"}),
        ("pages = {12-15}", {"pages": "12–15"}),
        ("pages = {S-12}", {"pages": "S-12"}),
        ("note = {This paper was WITHDRAWN}", {"status": "withdrawn"}),
    ],
)  # fmt: skip
def test_bibtex_fields_of_misc(fields, expected):
    (reference,) = bibtex(f"@misc{{k, title = {{T}}, {fields}}}")
    assert {name: getattr(reference, name) for name in expected} == expected


@pytest.mark.parametrize(
    "entry, venue",
    [("@phdthesis{k, title={T}, school={MIT}}", "MIT"), ("@thesis{k, title={T}, institution={ETH Z{\\\"u}rich}}", "ETH Zürich"),
     ("@techreport{k, title={T}, institution={IBM}}", "IBM"), ("@article{k, title={T}, journaltitle={J}, journalsubtitle={S}}", "J: S")],
)  # fmt: skip
def test_bibtex_venues(entry, venue):
    assert bibtex(entry)[0].venue == venue
