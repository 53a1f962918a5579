"""Which questions are in the language of the model that comes with Quire."""

from __future__ import annotations

import shutil
import time
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.config import EmbedSettings
from quire.embed.bert import Bert
from quire.embed.http import Ollama
from quire.embed.language import is_english

MODEL = Path(str(files("quire.embed").joinpath("model")))
VOCABULARY = frozenset((MODEL / "vocab.txt").read_text("utf-8").splitlines())

ENGLISH = """
how do I roll back a deployment
What is El Niño?
persistent
kubectl
kubectl apply -f
tokio::select!
HPA cpu utilization 50%
k8s ingress nginx tls
zxqv blarg
Configure Cloudflare Notifications Permissions
sp_addmergepublication (Transact-SQL) and sp_changemergepublication
useReducer useCallback forwardRef createPortal
numpy.linalg.norm(axis=1, keepdims=True)
Grafana Loki Promtail Prometheus Thanos
MafA phosphorylation enhances its ubiquitination.
α-synuclein aggregation
CHO cells
van der Waals forces
naïve Bayes classifier
café
São Paulo
Los Angeles population
what does 仁 mean in Confucianism
"""
OTHERS = """
Wie aktualisiere ich eine Bereitstellung
Netzwerkrichtlinien löschen
NETZWERKRICHTLINIEN LÖSCHEN
Was ist der Unterschied zwischen Pods und Containern?
Comment créer un pod ?
¿Cómo actualizar un despliegue?
Come si aggiorna la configurazione della rete?
como atualizar um deployment
Hoe werk ik een implementatie bij
Hur skapar man en pod
Jak usunąć wolumin
Miten poistan tiedoston hakemistosta
pod nasıl oluşturulur
Bagaimana cara menghapus berkas dengan cepat
làm thế nào để cập nhật
Không tìm thấy tệp
Как обновить развёртывание
Πώς ενημερώνω το σύστημα
كيف أحذف وحدة التخزين
डिप्लॉयमेंट को कैसे अपडेट करें
ポッドを更新する方法
如何更新部署
배포를 업데이트하는 방법
วิธีอัปเดต
Kubernetes 中的 Pod 是什么
Podのログを見る kubectl logs
"""


@pytest.mark.parametrize("text", ENGLISH.strip().splitlines())
def test_english_with_names_code_and_terms_is_english(text: str) -> None:
    """Meaning counts for every query that may be English: names and code are no evidence against it."""
    assert is_english(text, VOCABULARY)


@pytest.mark.parametrize("text", OTHERS.strip().splitlines())
def test_other_languages_are_not_english(text: str) -> None:
    """Other scripts, words with accents and frequent words of other languages tell, also beside names."""
    assert not is_english(text, VOCABULARY)


@pytest.mark.parametrize("text", ["", " ", "?!", "42", "🙂", "\ud800", "\u0301", "x" * 10_000, "Effekt"])
def test_what_says_nothing_is_taken_for_english(text: str) -> None:
    """A text with too little evidence is searched by meaning too."""
    assert is_english(text, VOCABULARY)


@given(st.text())
def test_any_text_gets_an_answer_and_numbers_do_not_change_it(text: str) -> None:
    """No text raises; white space, numbers and signs say nothing of a language."""
    assert is_english(f" {text}\n 1.2 = (3) ", VOCABULARY) == is_english(text, VOCABULARY)


@pytest.mark.parametrize("unit", ["a", "a ", "ö", "中", "._", "der ", "x_", "\u0301", "-"])
def test_time_grows_with_the_text(unit: str) -> None:
    """A pasted book takes no longer than its length says."""
    started = time.perf_counter()
    is_english(unit * 20_000, VOCABULARY)
    assert time.perf_counter() - started < 5


def test_a_model_in_a_folder_is_judged_only_if_its_vocabulary_is_english(tmp_path: Path) -> None:
    """Another vocabulary may know other languages; a server may, too."""
    for name in ("same", "more"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.onnx").touch()
        shutil.copy(MODEL / "vocab.txt", tmp_path / name)
    with (tmp_path / "more" / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("netzwerk\n")
    settings = EmbedSettings()
    german, same = "Netzwerkrichtlinien löschen", Bert(settings, str(tmp_path / "same"))
    assert not Bert(settings).knows(german)
    assert not same.knows(german)
    assert same.knows("delete network policies")
    assert Bert(settings, str(tmp_path / "more")).knows(german)
    assert Ollama("m", settings).knows(german)
