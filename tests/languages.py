"""Texts in many languages, and code, for tests of sizes. They were written for this purpose."""

# ruff: noqa: E501

from __future__ import annotations

import re

TEXTS = {
    "English": """\
# Rolling back a deployment

A release that misbehaves should be undone before anybody looks for the cause. Keep the last five releases on
the server, together with the settings they were started with; then rolling back takes one command and a few
seconds, and nobody has to remember anything at three o'clock in the morning.

Afterwards, write down what happened: when the errors began, which change introduced them, and how the team
noticed. An honest postmortem is worth more than a hundred dashboards. Don't blame people; the interesting
question is why the system allowed an ordinary mistake to reach production.

The pharmacokinetics of acetylsalicylic acid, the phylogeny of Archaeopteryx lithographica and the etymology of
"onomatopoeia" have one thing in common: their vocabulary is uncommon.
""",
    "German": """\
# Eine Auslieferung zurücknehmen

Eine fehlerhafte Version sollte zurückgenommen werden, bevor jemand nach der Ursache sucht. Bewahren Sie die
letzten fünf Versionen samt ihren Einstellungen auf dem Server auf; dann genügt ein einziger Befehl, und niemand
muss sich mitten in der Nacht an irgendetwas erinnern.

Die Geschwindigkeitsüberschreitung des Binnenschifffahrtskapitäns führte zu einer Ordnungswidrigkeitenanzeige,
gegen die er Widerspruch einlegte. Außerdem müssen Zugriffsberechtigungen regelmäßig überprüft werden.
""",
    "French": """\
# Annuler un déploiement

Une version défectueuse doit être retirée avant même que l'on en cherche la cause. Conservez les cinq dernières
versions sur le serveur, avec leurs réglages : il suffira alors d'une seule commande, et personne n'aura besoin
de se souvenir de quoi que ce soit à trois heures du matin.

Ensuite, notez ce qui s'est passé : quand les erreurs ont commencé, quel changement les a provoquées et comment
l'équipe s'en est aperçue. Où ça ? À l'hôpital, près de l'évêché.
""",
    "Spanish": """\
# Deshacer un despliegue

Una versión defectuosa debe retirarse antes de que alguien busque la causa. Guarde las cinco últimas versiones
en el servidor, junto con su configuración; así bastará una sola orden y nadie tendrá que acordarse de nada a
las tres de la madrugada. ¿Y después? Escriba qué ocurrió, cuándo empezaron los errores y cómo se dio cuenta el
equipo.
""",
    "Polish": """\
# Wycofywanie wdrożenia

Wadliwą wersję należy wycofać, zanim ktokolwiek zacznie szukać przyczyny. Przechowuj na serwerze pięć ostatnich
wersji wraz z ich ustawieniami; wtedy wystarczy jedno polecenie i kilka sekund. Następnie zapisz, co się
wydarzyło: kiedy zaczęły się błędy, która zmiana je spowodowała i jak zauważył to zespół.
""",
    "Finnish": """\
# Julkaisun peruuttaminen

Virheellinen versio kannattaa peruuttaa ennen kuin kukaan alkaa etsiä syytä. Säilytä viisi viimeisintä versiota
palvelimella asetuksineen; silloin yksi komento riittää. Kirjoita jälkeenpäin muistiin, mitä tapahtui: milloin
virheet alkoivat, mikä muutos ne aiheutti ja miten työryhmä huomasi ne. Epäjärjestelmällisyydellään.
""",
    "Turkish": """\
# Bir sürümü geri almak

Hatalı bir sürüm, nedeni araştırılmadan önce geri alınmalıdır. Son beş sürümü ayarlarıyla birlikte sunucuda
saklayın; o zaman tek bir komut yeterli olur. Sonra neler olduğunu yazın: hatalar ne zaman başladı, hangi
değişiklik buna yol açtı ve ekip bunu nasıl fark etti. Çekoslovakyalılaştıramadıklarımızdan mısınız?
""",
    "Swahili": """\
# Kurudisha toleo la awali

Toleo lenye hitilafu linapaswa kuondolewa kabla ya mtu yeyote kutafuta chanzo chake. Hifadhi matoleo matano ya
mwisho kwenye seva pamoja na mipangilio yake; kisha amri moja tu itatosha. Baadaye andika kilichotokea, makosa
yalianza lini, na jinsi timu ilivyogundua.
""",
    "Vietnamese": """\
# Hoàn tác một bản phát hành

Một phiên bản bị lỗi cần được gỡ bỏ trước khi bất kỳ ai tìm nguyên nhân. Hãy giữ năm phiên bản gần nhất trên máy
chủ cùng với cấu hình của chúng; khi đó chỉ cần một lệnh duy nhất. Sau đó hãy ghi lại điều đã xảy ra: lỗi bắt đầu
khi nào, thay đổi nào gây ra chúng và nhóm đã nhận ra bằng cách nào.
""",
    "Russian": """\
# Откат развёртывания

Неисправную версию следует откатить прежде, чем кто-нибудь начнёт искать причину. Храните на сервере пять
последних версий вместе с их настройками; тогда достаточно одной команды и нескольких секунд.

Потом запишите, что произошло: когда начались ошибки, какое изменение их вызвало и как команда это заметила.
Человеконенавистничество и превысокомногорассмотрительствующий — редкие слова.
""",
    "Ukrainian": """\
# Відкат розгортання

Несправну версію слід відкотити раніше, ніж хтось почне шукати причину. Зберігайте на сервері п'ять останніх
версій разом із їхніми налаштуваннями; тоді вистачить однієї команди. Потім запишіть, що сталося.
""",
    "Greek": """\
# Αναίρεση μιας έκδοσης

Μια ελαττωματική έκδοση πρέπει να αποσύρεται προτού αναζητήσει κανείς την αιτία. Κρατήστε στον διακομιστή τις
πέντε τελευταίες εκδόσεις μαζί με τις ρυθμίσεις τους· τότε αρκεί μία μόνο εντολή. Έπειτα σημειώστε τι συνέβη,
πότε άρχισαν τα σφάλματα και πώς τα αντιλήφθηκε η ομάδα.
""",
    "Arabic": """\
# التراجع عن إصدار

يجب سحب الإصدار المعيب قبل أن يبحث أي شخص عن السبب. احتفظ بآخر خمسة إصدارات على الخادم مع إعداداتها، وعندها
يكفي أمر واحد فقط. بعد ذلك اكتب ما حدث: متى بدأت الأخطاء، وأي تغيير تسبب فيها، وكيف لاحظها الفريق.
""",
    "Hebrew": """\
# ביטול פריסה

גרסה פגומה יש להסיר לפני שמישהו מחפש את הסיבה. שמרו על השרת את חמש הגרסאות האחרונות יחד עם ההגדרות שלהן; אז
תספיק פקודה אחת. לאחר מכן רשמו מה קרה: מתי התחילו השגיאות, איזה שינוי גרם להן וכיצד הצוות הבחין בכך.
""",
    "Hindi": """\
# किसी संस्करण को वापस लेना

किसी दोषपूर्ण संस्करण को कारण खोजने से पहले ही वापस ले लेना चाहिए। पिछले पाँच संस्करण उनकी सेटिंग के साथ सर्वर पर
रखें; तब केवल एक आदेश पर्याप्त होगा। बाद में लिखें कि क्या हुआ: त्रुटियाँ कब शुरू हुईं और टीम ने उन्हें कैसे देखा।
""",
    "Thai": """\
# การย้อนกลับเวอร์ชัน

ควรถอนเวอร์ชันที่มีข้อผิดพลาดออกก่อนที่ใครจะเริ่มหาสาเหตุ เก็บห้าเวอร์ชันล่าสุดไว้บนเซิร์ฟเวอร์พร้อมการตั้งค่า แล้วคำสั่งเดียวก็เพียงพอ
หลังจากนั้นให้บันทึกว่าเกิดอะไรขึ้น ข้อผิดพลาดเริ่มเมื่อใด และทีมสังเกตเห็นได้อย่างไร
""",
    "Chinese": """\
# 回滚部署

有问题的版本应当在查找原因之前先撤回。请把最近五个版本连同它们的配置一起保留在服务器上;这样只需要一条命令和几秒钟,谁也不必在凌晨三点回忆任何事情。

事后请写下发生了什么:错误从什么时候开始,是哪个改动引起的,团队又是怎样发现的。魑魅魍魉、饕餮、龃龉、鳏寡孤独都是比较少见的字。
""",
    "Japanese": """\
# デプロイを元に戻す

問題のあるバージョンは、原因を調べる前に取り下げるべきです。直近の五つのバージョンを設定とともにサーバーに残しておけば、コマンド一つで済みます。

その後、何が起きたのかを書き留めてください。エラーはいつ始まり、どの変更が原因で、チームはどのように気づいたのでしょうか。
""",
    "Korean": """\
# 배포 되돌리기

문제가 있는 버전은 원인을 찾기 전에 먼저 되돌려야 합니다. 최근 다섯 개의 버전을 설정과 함께 서버에 보관하면 명령 하나로 충분합니다. 그런 다음 무슨 일이
있었는지 적어 두십시오. 오류가 언제 시작되었고 어떤 변경이 원인이었으며 팀이 어떻게 알아차렸는지 말입니다.
""",
    "Python": """\
```python
from __future__ import annotations

def rolled_back(releases: list[Release], *, keep: int = 5) -> Release | None:
    \"\"\"The release before the last one, if there is one.\"\"\"
    kept = sorted(releases, key=lambda one: (one.created_at, one.id))[-keep:]
    if len(kept) < 2:
        raise NoRelease(f"only {len(kept):,} of {keep} releases are left: {[r.id for r in kept]!r}")
    return kept[-2] if kept[-1].status != "healthy" else None
```
""",
    "Rust": """\
```rust
impl<'a, T: Clone + Send + 'static> Rollback<'a, T> {
    pub fn latest(&self) -> Result<Option<&'a Release<T>>, Error> {
        let mut kept: Vec<_> = self.releases.iter().filter(|r| !r.is_draft()).collect();
        kept.sort_unstable_by_key(|r| std::cmp::Reverse(r.created_at));
        Ok(kept.get(1).copied()) // 0x7f_ff: the one before the last
    }
}
```
""",
    "shell and data": """\
```console
$ kubectl rollout undo deployment/lamp --to-revision=3 -n prod && echo "done: $?"
deployment.apps/lamp rolled back
$ sha256sum release-2026.11.tar.gz
9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  release-2026.11.tar.gz
```

| setting | default | meaning |
|---|---:|---|
| `lamp.max_connections` | 1,024 | how many may be open at once |
| `LAMP_PORT` | 8080 | ☞ see <https://example.org/docs/lamp?port=8080#network> |

```json
{"id": "3fa85f64-5717-4562-b3fc-2c963f66afa6", "ok": true, "sizes": [3.14159, 2.71828e-10], "π≈": "≤ 3.15 🎉👩‍💻"}
```

<div class="note"><p>Don&#39;t&nbsp;forget:</p>\t<code>key=dGhlIHF1aWNrIGJyb3duIGZveA==</code></div>
""",
}


def passages() -> list[str]:
    """Whole texts, their paragraphs, lines and sentences, and pairs of texts."""
    texts = [*TEXTS.values()]
    parts = [part for text in texts for part in re.split(r"\n\n|(?<=[.:。])\s|\n", text) if part]
    pairs = [one + other for one, other in zip(texts, texts[1:] + texts[:1], strict=True)]
    return [*texts, *(part for text in texts for part in text.split("\n\n")), *parts, *pairs]
