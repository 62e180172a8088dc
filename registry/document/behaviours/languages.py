"""Behaviours in Chinese, Japanese, Korean and Russian texts."""

import re
from typing import Final

from registry.document.behaviours.table import Foreign

FOREIGN: Final = (
    Foreign(
        "required-program",
        re.compile(
            r"安装[^\n]{0,60}(?:请从|可从)[^\n]{0,12}https?://(?!github|gitlab|docs|(?:www\.)?(?:npmjs|pypi|python|nodejs))[\w.-]{4,60}/?(?![\w/.-])[^\n]{0,80}下载|"
            r"(?:必须|务必|需要|请先|需先)[^\n]{0,30}?(?:安装|使用)[^\n]{0,60}[\s\S]{0,100}?(?:下载|快速安装|快速设置"
            r"|安装指南|安装方法)[^\n]{0,60}\s{0,4}?[^\n]{0,20}?"
            r"https?://(?!github|gitlab|docs|(?:www\.)?(?:npmjs|pypi|python|nodejs|docker|ffmpeg"
            r"|git-scm|google|microsoft|apple))[\w.-]{4,60}/?(?![\w/.-])"
        ),
        "tells you to download and install a program first",
    ),
    Foreign(
        "archive-with-password",
        re.compile(
            r"(?:解压|压缩|下载|архив|скача|解凍|ダウンロード|\.(?:zip|rar|7z|exe))[^\n]{0,120}(?:密码|口令"
            r"|парол\w{1,3}|パスワード|비밀번호)[ ]?(?:是|为|:|：|=|は|「|`)[^\n]{0,80}"
            r"|(?:密码|口令|парол\w{1,3}|パスワード)[^\n]{0,20}(?:解压|解凍|распак)",
            re.IGNORECASE,
        ),
        "gives the password of an archive to download",
    ),
    Foreign(
        "required-program",
        re.compile(
            r"(?:下载[^\n]{0,300}?(?:解压[^\n]{0,80}?(?:运行|执行)|运行[^\n]{0,20}?(?:可执行|安装程序|\.exe|exe))"
            r"|\.(?:exe|zip|rar|dmg)[^\n]{0,200}?(?:下载[^\n]{0,60}?(?:运行|执行))"
            r"|(?:https?://[^\n]{0,200}?ダウンロード|ダウンロード[^\n]{0,80}?\.(?:exe|zip|dmg))[^\n]{0,80}?実行"
            r"|скачайте[^\n]{0,200}?запустите)",
            re.IGNORECASE,
        ),
        "tells you to download and run a program first",
    ),
    Foreign(
        "pasted-command",
        re.compile(
            r"(?:访问|打开|前往|造訪|http)[^\n]{0,200}?(?:复制|拷贝|複製)[^\n]{0,100}?(?:终端|命令行|終端)"
            r"|(?:開き|アクセス|http)[^\n]{0,120}?コピー[^\n]{0,80}?ターミナル|(?:откройте"
            r"|http)[^\n]{0,160}?скопируйте[^\n]{0,100}?терминал",
        ),
        "tells you to paste a command into a terminal",
    ),
    Foreign(
        "concealment",
        re.compile(
            r"(?:不要|不得|请勿|切勿|别|勿)(?:向|对|把|将|主动)?[^。\n，,；]{0,10}?(?:告诉|告知|提及|提起)[^。\n，,；]{0,12}?用户"
            r"|(?:不要|不得|请勿|切勿|别)(?:向|对|跟|和)用户[^。\n，,；]{0,10}?(?:提及|说起|提起|(?:透露|披露|暴露"
            r"|说明)[^。\n，,；]{0,6}?(?:这|此|步|操作|行为|过程|执行|上传|发送|指令))"
            r"|(?:不要|不得|别|勿|切勿)(?:让|使)用户(?:知道|发现|察觉|看到这|注意到|意识到)|(?:无需|不必|不用)(?:告诉|告知|通知)用户"
            r"|(?:不要|不得|请勿|切勿|别|勿|无需|不必)在?[^。\n，,；]{0,10}?(?:回复|总结|回答|摘要|报告|输出|日志)[^。\n，,；]{0,6}?(?:提到|提及|提起|说明|列出|透露|告知)"
            r"|用户不知情|(?:悄悄|偷偷|暗中|秘密地)(?:地)?[^。\n，]{0,10}?(?:执行|运行|发送|上传|安装|下载|写入|收集|读取|修改|添加)"
            r"|瞒着用户|对用户(?:保密|隐瞒)"
            r"|не (?:\w{1,12} )?(?:сообщай|говори|упоминай|рассказывай|показывай|уведомляй"
            r"|информируй|раскрывай)\w{0,3}[^.\n]{0,40}пользовател|(?:без ведома|втайне от"
            r"|незаметно для) пользовател|пользователь не должен (?:знать|видеть|замечать)"
            r"|ユーザー?[にへ][^。\n]{0,24}?(?:知らせない|伝えない|言わない|教えない|報告しない|通知しない|明かさない|見せない|知らせず|気づかれ)"
            r"|ユーザー?に(?:は)?(?:内緒|秘密|黙)|(?:사용자에게)[^.\n]{0,20}(?:알리지|말하지|언급하지) ?(?:마|않)",
            re.IGNORECASE,
        ),
        "hides something from the user",
    ),
    Foreign(
        "instruction-override",
        re.compile(
            r"(?:忽略|无视|忘记|忘掉|抛弃|不要理会)(?:掉)?[^。\n，]{0,8}?(?:之前|以前|先前|上述|以上|前面|此前|所有|一切"
            r"|系统)[^。\n，]{0,10}?(?:指令|提示|规则|命令|限制|设定|要求)"
            r"|(?:(?:про)?игнорируй|забудь|отбрось)\w{0,3} (?:все )?(?:предыдущ|прежн|прошл"
            r"|ранее|систем)\w{0,6} ?(?:\w{1,12} )?(?:инструкци|указани|правил|команд)|(?:これまで|以前"
            r"|前|上記|すべて)の[^。\n]{0,10}?(?:指示|命令|ルール|プロンプト)[をは][^。\n]{0,6}?(?:無視|忘れ)",
            re.IGNORECASE,
        ),
        "tells the model to ignore its instructions",
    ),
)
"""Behaviours in scripts other than Latin.

The other modules of this package have the behaviours in Latin letters, one theme in each module.
"""
