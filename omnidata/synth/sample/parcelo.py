"""Parcelo, a made-up app for shopping and parcels, in Chinese."""

from __future__ import annotations

from dataclasses import dataclass

from omnidata.synth import sounds
from omnidata.synth.drawing import COMPLETE, HOME, IMPOSSIBLE, WAIT, WHITE, Theme, shade
from omnidata.synth.sample import phone
from omnidata.synth.sample.phone import WIDTH, Canvas, Screen
from omnidata.synth.sample.script import Cue, Moment, Script, Task, tap


@dataclass(frozen=True, slots=True)
class _Product:
    name: str
    icon: str
    price: int


_PRODUCTS = (
    _Product("Desk lamp", "lamp", 39),
    _Product("Headphones", "headphones", 85),
    _Product("Travel bag", "bag", 64),
    _Product("Wall clock", "clock", 28),
    _Product("Camera", "camera", 240),
    _Product("Table fan", "fan", 52),
)


def episodes(*, seed: int) -> Script:
    """Things to buy and parcels to fetch."""
    script = Script("Parcelo", seed=seed)
    theme = Theme.light("Parcelo", hue=0.07 + script.rng.uniform(-0.03, 0.02))
    products = script.rng.sample(_PRODUCTS, 6)
    shop = _shop(theme, products)
    _stock(script, theme, shop, products[0])
    _payment(script, theme, products[1])
    _lockers(script, theme)
    _buying(script, theme, shop, products)
    _offer(script, theme, shop)
    return script


def _shop(theme: Theme, products: list[_Product]) -> Screen:
    """A grid of products; targets `item0` to `item5` and `cart`."""
    canvas = Canvas(theme, title="Parcelo")
    canvas.icon("cart", (648, 108), size=48, fill=WHITE)
    canvas.target("cart", (608, 68, 688, 148))
    for k, product in enumerate(products):
        left, top = (24, 372)[k % 2], 190 + 424 * (k // 2)
        rect = (left, top, left + 324, top + 400)
        canvas.fill(rect, theme.card, radius=26)
        tint = shade(0.15 * k, 0.85, 0.5)
        canvas.fill((left + 16, top + 16, left + 308, top + 264), tint, radius=18)
        ink = shade(0.15 * k, 0.4, 0.5)
        canvas.icon(product.icon, (left + 162, top + 140), size=150, fill=ink)
        canvas.text(product.name, (left + 24, top + 304), size=31, fill=theme.ink, anchor="lm")
        price = f"${product.price}"
        canvas.text(
            price, (left + 24, top + 356), size=34, fill=theme.accent, anchor="lm", bold=True
        )
        canvas.target(f"item{k}", rect)
    canvas.navigation(("home", "search", "cart", "person"), active=0)
    return canvas.finish()


def _detail(theme: Theme, product: _Product) -> Screen:
    """A page for a product; targets `picture`, `add` and `buy`."""
    canvas = Canvas(theme, title=product.name, back=True)
    canvas.gradient((0, 160, WIDTH, 760), shade(0.1, 0.9, 0.6), shade(0.05, 0.75, 0.5))
    canvas.icon(product.icon, (360, 460), size=340, fill=shade(0.03, 0.42, 0.5))
    canvas.target("picture", (0, 160, WIDTH - 1, 760))
    canvas.text(product.name, (36, 840), size=50, fill=theme.ink, anchor="lm", bold=True)
    canvas.text(f"${product.price}", (684, 840), size=50, fill=theme.accent, anchor="rm", bold=True)
    for k in range(5):
        canvas.icon("star", (56 + 46 * k, 910), size=40, fill=theme.accent)
    for k, line in enumerate(("Ships within two days", "Free returns for a month", "Made to last")):
        canvas.icon("check", (56, 1010 + 70 * k), size=36, fill=theme.accent)
        canvas.text(line, (92, 1010 + 70 * k), size=30, fill=theme.faint, anchor="lm")
    canvas.button("add", (36, 1400, 348, 1508), "Add to cart", colour=theme.accent)
    canvas.button("buy", (372, 1400, 684, 1508), "Buy now")
    return canvas.finish()


def _checkout(theme: Theme, product: _Product) -> Screen:
    """The cart with one product; targets `pay` and `check` (a bar)."""
    canvas = Canvas(theme, title="Cart", back=True)
    note = f"1 x ${product.price}"
    canvas.row("row0", 200, icon=product.icon, title=product.name, note=note, tint=theme.accent)
    canvas.text("Card check", (36, 470), size=30, fill=theme.faint, anchor="lm")
    canvas.bar((36, 510, 684, 540), 0.0)
    canvas.target("check", (36, 510, 684, 540))
    canvas.text("Total", (36, 1280), size=36, fill=theme.ink, anchor="lm")
    total = f"${product.price}"
    canvas.text(total, (684, 1280), size=48, fill=theme.ink, anchor="rm", bold=True)
    canvas.button("pay", (36, 1380, 684, 1490), "Pay", colour=theme.accent, icon="shield")
    return canvas.finish()


def _station(theme: Theme) -> Screen:
    """A parcel station; targets `locker0` and `locker1`."""
    canvas = Canvas(theme, title="Parcel station", back=True)
    canvas.text("Your parcel is here", (360, 270), size=42, fill=theme.ink, bold=True)
    canvas.text("Which locker is it in?", (360, 330), size=30, fill=theme.faint)
    for k, name in enumerate(("A", "B")):
        left = 36 + 336 * k
        rect = (left, 430, left + 312, 1130)
        canvas.fill(rect, theme.card, radius=30, outline=theme.soft, width=4)
        canvas.icon("box", (left + 156, 700), size=190, fill=theme.accent)
        canvas.text(f"Locker {name}", (left + 156, 960), size=42, fill=theme.ink, bold=True)
        canvas.target(f"locker{k}", rect)
    canvas.navigation(("home", "search", "box", "person"), active=2)
    return canvas.finish()


def _stock(script: Script, theme: Theme, shop: Screen, product: _Product) -> None:
    detail, cart = _detail(theme, product), _checkout(theme, product)
    sound = script.hear(seconds=2.0)
    where = (detail.targets["picture"],)
    script.twins(
        Task(
            "semantic_understanding",
            "critical",
            "zh",
            f"Open the {product.name}. If a green check mark appears over the picture, add it to "
            "the cart; if a red cross appears, it is sold out: report the task as impossible.",
            f"打开商品 {product.name}。如果图片上出现绿色对勾，就加入购物车；"
            "如果出现红叉，表示已售罄，请报告任务无法完成。",
        ),
        "video",
        start=[Moment(shop, tap(shop, "item0"), script.hear())],
        endings=[
            [
                Moment(detail, tap(detail, "add"), sound, Cue("toast", where, 1)),
                Moment(cart, COMPLETE, script.hear()),
            ],
            [Moment(detail, IMPOSSIBLE, sound, Cue("toast", where, -1))],
        ],
    )


def _payment(script: Script, theme: Theme, product: _Product) -> None:
    cart = _checkout(theme, product)
    paid = phone.done(theme, title="Paid", note=product.name)
    sound = script.hear(seconds=2.0)
    where = (cart.targets["check"],)
    half = Cue("fill", where, script.rng.uniform(0.4, 0.6), theme.accent)
    full = Cue("fill", where, 1.0, theme.accent)
    pay, end = tap(cart, "pay"), Moment(paid, COMPLETE, script.hear())
    script.twins(
        Task(
            "temporal_reasoning",
            "critical",
            "zh",
            "The card check runs as a bar and clears when it stops. Tap Pay only when the bar has "
            "run to its end; if it stopped half way, wait for the next try.",
            "银行卡验证以进度条显示，停止后会清空。进度条走到头才点击“Pay（支付）”；"
            "如果中途停止，就等待下一次验证。",
        ),
        "video",
        start=[Moment(cart, WAIT, script.hear())],
        endings=[
            [Moment(cart, pay, sound, full), end],
            [Moment(cart, WAIT, sound, half), Moment(cart, pay, sound, full), end],
        ],
    )


def _lockers(script: Script, theme: Theme) -> None:
    station = _station(theme)
    low, high = script.rng.uniform(380, 460), script.rng.uniform(760, 920)
    opened = phone.done(theme, title="Locker open", note="Please take your parcel")
    endings = [
        [
            Moment(
                station,
                tap(station, f"locker{k}"),
                script.hear(
                    sounds.sequence([sounds.tone(f, seconds=0.3) for f in pair], every=0.4),
                    seconds=2.0,
                ),
            ),
            Moment(opened, COMPLETE, script.hear(sounds.chime((523, 659, 784)))),
        ]
        for k, pair in enumerate(((low, high), (high, low)))
    ]
    script.twins(
        Task(
            "cross_modal_discrimination",
            "critical",
            "zh",
            "The station plays two notes. Low then high means locker A, high then low means "
            "locker B. Tap the right locker.",
            "取件站会播放两个音：先低后高是 A 柜，先高后低是 B 柜。请点击正确的柜门。",
        ),
        "audio",
        start=[Moment(station, WAIT, script.hear())],
        endings=endings,
    )


def _buying(script: Script, theme: Theme, shop: Screen, products: list[_Product]) -> None:
    choice = script.rng.randrange(2, 6)
    product = products[choice]
    detail, cart = _detail(theme, product), _checkout(theme, product)
    paid = phone.done(theme, title="Paid", note=product.name)
    script.add(
        Task(
            "localization",
            "supportive",
            "zh",
            f"Buy the {product.name}: add it to the cart and pay; a chime confirms the payment.",
            f"购买 {product.name}：加入购物车并支付，听到提示音表示支付成功。",
        ),
        Moment(shop, tap(shop, f"item{choice}"), script.hear()),
        Moment(detail, tap(detail, "add"), script.hear()),
        Moment(cart, tap(cart, "pay"), script.hear(sounds.pluck(988))),
        Moment(paid, COMPLETE, script.hear(sounds.chime((659, 784, 1047)))),
    )


def _offer(script: Script, theme: Theme, shop: Screen) -> None:
    offer = phone.dialog(
        shop, theme, title="Today only", note="10 % off everything", yes="Show me", no="No, thanks"
    )
    shopping = script.hear(sounds.music(script.noise, seconds=1.1) * 0.2)
    script.add(
        Task(
            "instant_response",
            "present",
            "zh",
            "Open Parcelo, dismiss the offer as soon as it pops up, and leave to the home screen.",
            "打开 Parcelo，优惠弹窗一出现就立即关闭，然后回到主屏幕。",
        ),
        Moment(script.start, tap(script.start, "Parcelo"), shopping),
        Moment(offer, tap(offer, "no"), shopping),
        Moment(shop, HOME, shopping),
        Moment(script.start, COMPLETE, shopping),
    )
