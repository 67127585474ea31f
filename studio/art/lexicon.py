"""Words of other languages, as data: `english = word, word;`. Plurals and inflections that are regular are left out."""

from __future__ import annotations

GERMAN = """
white = weiß, schneeweiß; ivory = elfenbein; cream = creme, cremeweiß, cremefarben; beige = beige;
sand = sand, sandfarben; taupe = taupe; brown = braun; dark brown = dunkelbraun; light brown = hellbraun;
chocolate = schokobraun, schokolade; rust = rost, rostrot; terracotta = terrakotta, terracotta;
copper = kupfer; gold = gold, golden; ochre = ocker; mustard = senf, senfgelb; honey = honig, honiggelb;
yellow = gelb; pale yellow = hellgelb, zartgelb; lemon yellow = zitronengelb; olive green = olivgrün,
oliv; moss = moosgrün; sage = salbei, salbeigrün; mint = mint, minze, mintgrün; green = grün;
dark green = dunkelgrün, tannengrün; light green = hellgrün; emerald = smaragd, smaragdgrün;
forest green = waldgrün; teal = petrol, blaugrün; turquoise = türkis; sky blue = himmelblau;
blue = blau; light blue = hellblau; dark blue = dunkelblau; navy = marine, marineblau, nachtblau;
royal blue = königsblau; indigo = indigo; lilac = flieder, fliederfarben; violet = violett, veilchenblau;
purple = lila, purpur; aubergine = aubergine; pink = rosa, pink, rosarot; pale pink = zartrosa, hellrosa;
dusty pink = altrosa; peach = pfirsich, pfirsichfarben; apricot = aprikose, aprikot; coral = koralle,
korallenrot; orange = orange, orangefarben; red = rot, knallrot; dark red = dunkelrot;
cherry red = kirschrot; burgundy = weinrot, bordeaux; grey = grau; light grey = hellgrau;
dark grey = dunkelgrau; charcoal = anthrazit; silver = silber, silbern; black = schwarz; pale = zart,
blass; light = hell; dark = dunkel; muted = gedämpft; bright = leuchtend, kräftig; leaf = blatt, blätter,
laub; fern = farn; eucalyptus = eukalyptus; palm = palme, palmblatt, palmblätter, palmenblatt,
palmenblätter; monstera = monstera; oak = eiche, eichenblatt, eichenblätter; acorn = eichel;
cactus = kaktus, kakteen; olives = olivenzweig, oliven; wheat = weizen, ähre; clover = klee, kleeblatt,
kleeblätter; seaweed = alge, seetang; sprig = zweig, kräuter, ranke; bamboo = bambus; pine tree = tanne,
tannenbaum, tannenbäume, kiefer, baum, bäume; flower = blume, blüte; peony = pfingstrose; roses = rose,
rosen; daisy = gänseblümchen, margerite; sunflower = sonnenblume; tulip = tulpe; poppy = mohn, mohnblume;
cherry blossom = kirschblüte; lotus = lotus, seerose, lilie; lavender sprig = lavendel;
wildflower = wildblume, feldblume, wiesenblume; dandelion = pusteblume, löwenzahn; bird = vogel, vögel,
spatz; swallow = schwalbe; heron = reiher, kranich, storch, störche; flamingo = flamingo; owl = eule;
feather = feder; swan = schwan, schwäne; butterfly = schmetterling, falter; bee = biene, hummel;
dragonfly = libelle; ladybird = marienkäfer; star = stern; moon = mond; sun = sonne; cloud = wolke;
rain = regen, tropfen, regentropfen; rainbow = regenbogen, regenbögen; snowflake = schneeflocke, schnee;
planet = planet; rocket = rakete; fish = fisch; whale = wal; shell = muschel; corals = korallen;
anchor = anker; boat = boot, segelboot, schiff; jellyfish = qualle; turtle = schildkröte;
starfish = seestern; crab = krabbe, krebs; lemons = zitrone; oranges = orangen, apfelsine, zitrusfrucht,
zitrusfrüchte; strawberry = erdbeere; cherries = kirsche; apple = apfel, äpfel; pear = birne;
berry = beere, blaubeere, heidelbeere, traube; fig = feige; pineapple = ananas; watermelon = wassermelone,
melone; pumpkin = kürbis; mushroom = pilz, fliegenpilz; mountain = berg, gebirge; heart = herz;
house = haus, häuser, häuschen; balloon = ballon, heißluftballon; cat = katze; fox = fuchs, füchse;
bear = bär; rabbit = hase, kaninchen; dog = hund; tea = tee, tasse, teetasse; paisley = paisley;
elephant = elefant; lion = löwe; tiger = tiger; giraffe = giraffe; zebra = zebra; deer = hirsch, reh;
hedgehog = igel; squirrel = eichhörnchen; penguin = pinguin; parrot = papagei; snail = schnecke;
frog = frosch, frösche; dinosaur = dinosaurier, dino; horse = pferd; bicycle = fahrrad, fahrräder;
lighthouse = leuchtturm, leuchttürme; car = auto, wagen; key = schlüssel; umbrella = regenschirm;
chili = chili; carrot = karotte, möhre; ice cream = eis, eiscreme; stripe = streifen, gestreift;
dot = punkt, tupfen, gepunktet; check = karo, kariert; tartan = schottenkaro; wave = welle; tile = fliese,
kachel; triangle = dreieck; hexagon = sechseck, wabe; circle = kreis; geometric = geometrisch;
herringbone = fischgrat; houndstooth = hahnentritt; diamond = raute; terrazzo = terrazzo;
leopard = leopard, leopardenmuster; arches = bögen, bogen; on = auf, vor, über; background = hintergrund,
grund; and = und; with = mit; in = im, in; the = der, die, das, ein, eine; small = klein, kleine, winzig;
large = groß, große, riesig; scattered = gestreut, verstreut; mirrored = gespiegelt;
watercolour = aquarell; ink = tusche, gezeichnet; lino = linolschnitt; autumn = herbst, herbstlich;
winter = winterlich; spring = frühling; summer = sommer; christmas = weihnachten, weihnachtlich;
midnight = mitternacht; sea = meer; tropical = tropisch; forest = wald;
desert = wüste; jungle = dschungel, urwald; garden = garten; night = nacht; sunset = sonnenuntergang;
unicorn = einhorn, einhörner; octopus = krake, tintenfisch; hydrangea = hortensie; ginkgo = ginkgo;
grapes = trauben, weintraube; bow = schleife; thistle = distel, kornblume; skull = totenkopf;
"""

FRENCH = """
white = blanc, blanche, blanches, blancs; ivory = ivoire; cream = crème; ecru = écru; beige = beige;
sand = sable; brown = brun, marron, brune; chocolate = chocolat; rust = rouille; terracotta = terre cuite;
copper = cuivre; gold = or, doré, dorée; ochre = ocre; mustard = moutarde; honey = miel;
saffron = safran; yellow = jaune; lemon yellow = jaune citron; olive green = olive, vert olive;
moss = mousse; sage = sauge, vert sauge; mint = menthe; green = vert, verte; emerald = émeraude;
forest green = vert forêt, vert sapin; teal = bleu canard, pétrole; turquoise = turquoise;
sky blue = bleu ciel, azur; blue = bleu, bleue; navy = bleu marine, marine; royal blue = bleu roi;
indigo = indigo; lilac = lilas; violet = violet, violette; purple = pourpre; aubergine = aubergine;
mauve = mauve; pink = rose; dusty pink = vieux rose; fuchsia = fuchsia; peach = pêche; apricot = abricot;
coral = corail; orange = orange, orangé; red = rouge; raspberry = framboise; burgundy = bordeaux,
lie de vin; plum = prune; grey = gris, grise, grises; charcoal = anthracite; silver = argent, argenté;
black = noir, noire; pale = pâle; light = clair, claire; dark = foncé, foncée; soft = doux, douce;
bright = vif, vive; pastel = pastel; leaf = feuille, feuillage; fern = fougère; eucalyptus = eucalyptus;
palm = palmier, palme; oak = chêne, feuille de chêne; acorn = gland; cactus = cactus;
olives = branche d olivier, olivier; wheat = blé, épi de blé; clover = trèfle; seaweed = algue;
sprig = branche, rameau, brin, herbe; bamboo = bambou; pine tree = sapin, pin, arbre; flower = fleur,
fleuri, fleurie; peony = pivoine; roses = roses, rosier; daisy = marguerite, pâquerette;
sunflower = tournesol; tulip = tulipe; poppy = coquelicot, pavot; cherry blossom = fleur de cerisier,
cerisier; lotus = lotus, nénuphar, lys; lavender sprig = lavande; wildflower = fleur des champs,
fleur sauvage; dandelion = pissenlit; bird = oiseau, oiseaux, moineau; swallow = hirondelle;
heron = héron, grue, cigogne; flamingo = flamant, flamant rose; owl = hibou, chouette; feather = plume;
swan = cygne; butterfly = papillon; bee = abeille, bourdon; dragonfly = libellule; ladybird = coccinelle;
star = étoile; moon = lune; sun = soleil; cloud = nuage; rain = pluie, goutte; rainbow = arc en ciel;
snowflake = flocon, flocon de neige, neige; planet = planète; rocket = fusée; fish = poisson;
whale = baleine; shell = coquillage, coquille; corals = coraux; anchor = ancre; boat = bateau, bateaux,
voilier; jellyfish = méduse; turtle = tortue; starfish = étoile de mer; crab = crabe, homard;
lemons = citron; oranges = oranges, agrume; strawberry = fraise; cherries = cerise; apple = pomme;
pear = poire; berry = baie, myrtille, raisin; fig = figue; pineapple = ananas; watermelon = pastèque,
melon; pumpkin = citrouille, potiron; mushroom = champignon; mountain = montagne; heart = cœur, coeur;
house = maison; balloon = montgolfière, ballon; cat = chat, chaton; fox = renard; bear = ours;
rabbit = lapin; dog = chien; tea = tasse, tisane, théière; paisley = cachemire; elephant = éléphant;
lion = lion; tiger = tigre; giraffe = girafe; zebra = zèbre; deer = cerf, biche; hedgehog = hérisson;
squirrel = écureuil; penguin = pingouin, manchot; parrot = perroquet; snail = escargot;
frog = grenouille; dinosaur = dinosaure; horse = cheval, chevaux; bicycle = vélo, bicyclette;
lighthouse = phare; car = voiture; key = clé, clef; umbrella = parapluie; chili = piment;
carrot = carotte; ice cream = glace; stripe = rayure, rayé, rayée; dot = pois, à pois, point;
check = carreau, carreaux, vichy; tartan = écossais; wave = vague, onde; tile = carrelage,
carreau de ciment, azulejo; triangle = triangle; circle = cercle, rond; geometric = géométrique;
herringbone = chevron, chevrons; houndstooth = pied de poule; diamond = losange; leopard = léopard;
arches = arche; on = sur; background = fond; and = et; with = avec, aux, à; in = en, dans; the = le, la,
les, un, une, des, du; of = de, d; small = petit, petite, minuscule; large = grand, grande, géant;
scattered = éparpillé, semis; mirrored = en miroir; watercolour = aquarelle; ink = encre, dessiné;
lino = linogravure; autumn = automne; winter = hiver; spring = printemps; summer = été;
christmas = noël; midnight = minuit; sea = mer; tropical = tropical, tropicale, tropicaux;
forest = forêt; garden = jardin;
desert = désert; jungle = jungle; night = nuit; sunset = coucher de soleil; unicorn = licorne;
octopus = pieuvre; hydrangea = hortensia; grapes = grappe; bow = nœud; thistle = chardon, bleuet;
"""

SPANISH = """
white = blanco; ivory = marfil; cream = crema; beige = beige; sand = arena; brown = marrón, café,
castaño; chocolate = chocolate; rust = óxido; terracotta = terracota; copper = cobre; gold = dorado, oro;
ochre = ocre; mustard = mostaza; honey = miel; yellow = amarillo; lemon yellow = amarillo limón;
olive green = verde oliva, oliva; moss = musgo; sage = salvia, verde salvia; mint = menta; green = verde;
emerald = esmeralda; forest green = verde bosque; teal = verde azulado, petróleo; turquoise = turquesa;
sky blue = azul cielo, celeste; blue = azul; navy = azul marino; royal blue = azul rey; indigo = índigo,
añil; lilac = lila; violet = violeta; purple = morado, púrpura; aubergine = berenjena; pink = rosa,
rosado; fuchsia = fucsia; peach = melocotón, durazno; apricot = albaricoque; coral = coral;
orange = naranja, anaranjado; red = rojo; burgundy = burdeos, granate, vino; grey = gris;
charcoal = antracita; silver = plata, plateado; black = negro; pale = pálido; light = claro;
dark = oscuro; soft = suave; bright = vivo, brillante; pastel = pastel; leaf = hoja, follaje;
fern = helecho; eucalyptus = eucalipto; palm = palmera, palma; oak = roble; acorn = bellota;
cactus = cactus, cacto; olives = rama de olivo, olivo, aceituna; wheat = trigo, espiga; clover = trébol;
seaweed = alga; sprig = rama, ramita, hierba; bamboo = bambú; pine tree = pino, abeto, árbol;
flower = flor, floral, florecilla; peony = peonía; roses = rosas; daisy = margarita; sunflower = girasol;
tulip = tulipán; poppy = amapola; cherry blossom = flor de cerezo, flores de cerezo, cerezo;
lotus = loto, nenúfar, lirio; lavender sprig = lavanda; wildflower = flor silvestre, flores silvestres;
dandelion = diente de león; bird = pájaro, pajarito, ave; swallow = golondrina; heron = garza, grulla,
cigüeña; flamingo = flamenco; owl = búho, lechuza; feather = pluma; swan = cisne; butterfly = mariposa;
bee = abeja; dragonfly = libélula; ladybird = mariquita; star = estrella; moon = luna; sun = sol;
cloud = nube; rain = lluvia, gota; rainbow = arcoíris, arco iris; snowflake = copo de nieve,
copos de nieve, nieve; planet = planeta; rocket = cohete; fish = pez, pescado; whale = ballena;
shell = concha, caracola; corals = corales; anchor = ancla; boat = barco, velero; jellyfish = medusa;
turtle = tortuga; starfish = estrella de mar, estrellas de mar; crab = cangrejo, langosta;
lemons = limón; oranges = naranjas, cítrico; strawberry = fresa; cherries = cereza; apple = manzana;
pear = pera; berry = baya, arándano, mora, uva; fig = higo; pineapple = piña; watermelon = sandía,
melón; pumpkin = calabaza; mushroom = seta, hongo; mountain = montaña; heart = corazón; house = casa,
casita; balloon = globo; cat = gato, gatito; fox = zorro; bear = oso; rabbit = conejo, liebre;
dog = perro, perrito; tea = té, taza; paisley = cachemira; elephant = elefante; lion = león;
tiger = tigre; giraffe = jirafa; zebra = cebra; deer = ciervo, venado; hedgehog = erizo;
squirrel = ardilla; penguin = pingüino; parrot = loro, papagayo; snail = caracol; frog = rana;
dinosaur = dinosaurio; horse = caballo; bicycle = bicicleta; lighthouse = faro; car = coche, carro;
key = llave; umbrella = paraguas; chili = chile, guindilla; carrot = zanahoria; ice cream = helado;
stripe = raya, rayado; dot = lunar, punto; check = cuadro, vichy; tartan = escocés; wave = ola, onda;
tile = azulejo, baldosa; triangle = triángulo; circle = círculo; geometric = geométrico;
herringbone = espiga de pez; houndstooth = pata de gallo; diamond = rombo; leopard = leopardo;
arches = arco; on = sobre; background = fondo; and = y, e; with = con; in = en; the = el, la, los, las,
un, una; of = de, del; small = pequeño, diminuto; large = grande, gigante; scattered = esparcido;
mirrored = espejo, reflejado; watercolour = acuarela; ink = tinta, dibujado; lino = linograbado;
autumn = otoño; winter = invierno; spring = primavera; summer = verano; christmas = navidad;
midnight = medianoche; sea = mar; tropical = tropical; forest = bosque; garden = jardín;
desert = desierto; jungle = selva; night = noche; sunset = atardecer; unicorn = unicornio; octopus = pulpo;
hydrangea = hortensia; grapes = uvas; bow = lazo; thistle = cardo; skull = calavera;
"""

JAPANESE = """
white = 白, 白い, ホワイト; ivory = アイボリー, 象牙色; cream = クリーム, クリーム色, 生成り;
beige = ベージュ; brown = 茶, 茶色, 茶色い, ブラウン; terracotta = テラコッタ; gold = 金, 金色, ゴールド;
mustard = からし色, 辛子色, マスタード; yellow = 黄, 黄色, 黄色い, イエロー; olive green = オリーブ色;
sage = セージ; mint = ミント; green = 緑, 緑色, 緑の, グリーン; light green = 黄緑; moss = 抹茶, 抹茶色;
emerald = エメラルド; turquoise = ターコイズ, 青緑; sky blue = 水色, 空色; blue = 青, 青い, 青色, ブルー;
navy = 紺, 紺色, ネイビー; indigo = 藍, 藍色; lilac = 藤色; lavender colour = ラベンダー色;
violet = すみれ色, 菫色; purple = 紫, 紫色, パープル; pink = 桃色, ピンク, ピンク色; blush = 桜色;
coral = 珊瑚色, コーラル; orange = 橙, 橙色, オレンジ色; red = 赤, 赤い, 赤色, 朱色, レッド; crimson = 紅,
深紅; burgundy = えんじ, ワイン色; grey = 灰色, グレー, ねずみ色; charcoal = 墨色; silver = 銀, 銀色;
black = 黒, 黒い, ブラック; light = 薄い, 淡い, ライト; dark = 濃い, 暗い; pastel = パステル; leaf = 葉,
葉っぱ, 木の葉; fern = 羊歯, シダ; palm = 椰子, ヤシ, ヤシの木; monstera = モンステラ; maple = 紅葉,
もみじ, 楓; acorn = どんぐり; cactus = サボテン; olives = オリーブ; wheat = 小麦, 麦; clover = クローバー,
四つ葉; seaweed = 海藻; sprig = 枝, 小枝; bamboo = 竹, 笹; pine tree = 松, もみの木, 木; flower = 花,
お花, 花柄; peony = 牡丹, 芍薬, 菊; roses = 薔薇, バラ, ばら; camellia = 椿; daisy = 雛菊, ひなぎく,
デイジー; sunflower = 向日葵, ひまわり, ヒマワリ; tulip = チューリップ; poppy = ポピー, ひなげし;
cherry blossom = 桜, 桜の花, さくら; plum blossom = 梅, 梅の花; lotus = 蓮, 睡蓮, 百合, ユリ;
lavender sprig = ラベンダー; wildflower = 野の花, 野花; dandelion = たんぽぽ, タンポポ; bird = 鳥, 小鳥,
雀; swallow = 燕, つばめ, ツバメ; heron = 鷺, サギ, 青鷺, 鶴, ツル, 白鷺; flamingo = フラミンゴ; owl = 梟,
フクロウ, ふくろう; feather = 羽, 羽根; swan = 白鳥; butterfly = 蝶, ちょう, 蝶々; bee = 蜂, ミツバチ;
dragonfly = 蜻蛉, とんぼ, トンボ; ladybird = てんとう虫; star = 星, 星空; moon = 月, お月様; sun = 太陽,
お日様; cloud = 雲; rain = 雨, 雫; rainbow = 虹; snowflake = 雪, 雪の結晶; planet = 惑星, 宇宙;
rocket = ロケット; fish = 魚, 金魚, 鯉; whale = 鯨, クジラ, くじら; shell = 貝, 貝殻; corals = 珊瑚,
サンゴ; anchor = 錨, いかり; boat = 船, 舟, ヨット; jellyfish = 海月, クラゲ; turtle = 亀, カメ;
starfish = ヒトデ; crab = 蟹, カニ; lemons = レモン, 檸檬; oranges = オレンジ, みかん, 蜜柑, 柑橘;
strawberry = 苺, いちご, イチゴ; cherries = さくらんぼ, サクランボ; apple = りんご, リンゴ, 林檎;
pear = 梨, 洋梨; berry = 葡萄, ぶどう, ベリー; fig = いちじく; pineapple = パイナップル;
watermelon = 西瓜, スイカ, すいか; pumpkin = かぼちゃ, 南瓜; mushroom = きのこ, キノコ, 茸; mountain = 山,
富士山; heart = ハート; house = 家; balloon = 気球, 風船; cat = 猫, ネコ, ねこ; fox = 狐, キツネ, きつね;
bear = 熊, クマ, くま; rabbit = 兎, うさぎ, ウサギ; dog = 犬, イヌ, いぬ; tea = お茶, 紅茶, ティーカップ;
paisley = ペイズリー; elephant = 象, ゾウ; lion = ライオン; tiger = 虎, トラ; giraffe = キリン;
zebra = シマウマ; deer = 鹿, シカ; hedgehog = ハリネズミ; squirrel = リス; penguin = ペンギン;
parrot = オウム, インコ; snail = かたつむり, カタツムリ; frog = 蛙, カエル; dinosaur = 恐竜; horse = 馬;
bicycle = 自転車; lighthouse = 灯台; car = 車; key = 鍵; umbrella = 傘; chili = 唐辛子; carrot = 人参,
にんじん; ice cream = アイス, アイスクリーム; stripe = 縞, 縞模様, ストライプ, しま模様; dot = 水玉,
ドット, 水玉模様; check = 格子, チェック, 市松; checkerboard = 市松模様; tartan = タータン; wave = 波;
seigaiha = 青海波; tile = タイル; triangle = 三角, 鱗文; hexagon = 六角形, 亀甲; circle = 丸, 円, 七宝;
geometric = 幾何学, 幾何学模様; herringbone = ヘリンボーン; houndstooth = 千鳥格子; leopard = ヒョウ柄,
豹柄; background = 背景, 地に, 地の, の地; and = と; small = 小さな, 小さい; large = 大きな, 大きい;
scattered = 散らし, 散りばめた; watercolour = 水彩, 水彩画; ink = 墨絵, 線画; autumn = 秋, 秋の;
winter = 冬, 冬の; spring = 春, 春の; summer = 夏, 夏の; christmas = クリスマス; midnight = 真夜中, 夜;
sea = 海; tropical = 南国, トロピカル; forest = 森; japanese = 和風, 和柄;
desert = 砂漠; jungle = ジャングル; night = 夜空; unicorn = ユニコーン; octopus = 蛸, タコ; hydrangea = 紫陽花,
あじさい, アジサイ; ginkgo = 銀杏, いちょう, イチョウ; grapes = ブドウ; bow = リボン; thistle = 薊, アザミ;
"""
