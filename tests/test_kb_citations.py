"""One citation said by several sources is one citation for whoever counts or lists them."""

import shutil
import sqlite3

from kb import store, store_web
from kb.db import open_reader

# What an import of another copy of the packaged surveys leaves: the same citations, said by other records.
AGAIN = """
    INSERT INTO record (source_id, locator, position, method, retrieved_at, fields, signature, work_id, origin)
    SELECT source_id, 'again ' || locator, position, method, retrieved_at, fields, signature, work_id, 'user' FROM record
    WHERE id IN (SELECT record_id FROM citation);
    INSERT INTO citation (citing_record_id, citing_id, cited_id, record_id, number, page, origin)
    SELECT c.citing_record_id, c.citing_id, c.cited_id, other.id, c.number, '', 'user' FROM citation c
    JOIN record r ON r.id = c.record_id
    JOIN record other ON other.source_id = r.source_id AND other.locator = 'again ' || r.locator;
"""


def test_a_survey_read_twice_lists_each_citation_once(database, tmp_path):
    path = tmp_path / "kb.sqlite"
    shutil.copy(database, path)
    reader = open_reader(str(path))
    before, counted = store_web.every_citation(reader), store.status(reader)["citations"]
    reader.close()
    assert counted == 707
    connection = sqlite3.connect(path)
    connection.executescript(AGAIN)
    assert connection.execute("SELECT COUNT(*) FROM citation").fetchone()[0] == 2 * counted
    connection.close()
    reader = open_reader(str(path))
    assert store.status(reader)["citations"] == counted
    assert store_web.every_citation(reader) == before
    reader.close()
