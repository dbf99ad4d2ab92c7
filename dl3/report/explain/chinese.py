"""The sentences of an explanation in Chinese."""

WORKER = " {program} 的 worker {worker}"
WHEN = "{times}，始于 {at_s:.3f} s，持续 {us:,.0f} µs"
TAKEN = "核 {core} 被夺走，" + WORKER.strip() + " 无法运行" + WHEN + "，占用者为 {who}{also}"
PAUSED = "核 {core} 上" + WORKER + " {did}" + WHEN
INTERRUPTED = PAUSED + "，原因是中断 {who}"
STOLEN = PAUSED + "，内核并未将该核交给其他线程；虚拟机监控器共占用该核 {steal_ms:,.0f} ms"
OWN = PAUSED + "，而该核一直归其所有：该 worker 自身受阻，或虚拟机监控器不公布其占用"
RING = (
    "；{mpps:.4g} Mpps 时深度为 {ring:,} 的环可容纳 {holds_us:,.0f} µs；丢失 {frames:,} 个包"
    "（若环此前为空，预计 {expected:,} 个）"
)
DEVICE = "；其间丢失 {frames:,} 个包"
GENERATOR = "；丢失 {frames:,} 个包，因为发生器此时未能及时发送和接收"
BEHIND = "；发生器未能保持其速率"
COUNTERS = (
    "整个试验期间，{program} 所在的核 {core}：其他线程运行 {switches:,.0f} 次，中断 {interrupts:,.0f} 次，软中断 "
    "{softirqs:,.0f} 次，虚拟机监控器占用 {steal_ms:,.0f} ms；{program} 缺页 {faults:,.0f} 次"
)
STARTS = {"taken": TAKEN, "interrupted": INTERRUPTED, "paused": PAUSED, "stolen": STOLEN, "own": OWN}
DID = {"ring": "停止轮询", "device": "停止轮询", "generator": "停顿"}
ENDS = {"ring": RING, "device": DEVICE, "generator": GENERATOR}


def begun(start: str, end: str) -> str:
    """How a sentence starts: a worker of dl3gen that stood still may have polled later than that, after it has sent."""
    return STARTS[start].replace("{did}", DID[end])


EXPLAIN_CHINESE = {
    **{f"explain.{start}.{end}": begun(start, end) + ENDS[end] for start in STARTS for end in ENDS},
    **{f"explain.{start}.generator.behind": begun(start, "generator") + BEHIND for start in STARTS},
    "explain.heading": "{record} 第 {line} 行：{dut}，{frame}帧，{mpps:.4g} Mpps，{seconds:.4g} s：{lost}",
    "explain.heading.lost": "{sent:,} 个包中丢失 {lost:,} 个（{ratio:.4%}）",
    "explain.heading.none": "没有丢包",
    "explain.times": " {n:,} 次，最严重的一次",
    "explain.also": "（另有 {others:,} 个线程）",
    "explain.alone": "{text}。",
    "explain.advised": "{text}。建议：{advice}。",
    "explain.invalid": "此试验无效，不能说明被测设备的性能；{reason}",
    "explain.place": "{frames:,} 个包，占丢失总数的 {share:.1%}：{place}",
    "explain.reset": "{frames:,} 个包，占丢失总数的 {share:.1%}：被测设备因有意复位而中断期间丢失；"
    "中断多久正是此项测试所测量的",
    "explain.more": "另有 {frames:,} 个包丢失于其他 {n:,} 次停顿",
    "explain.full": "核 {core} 上 dl3d 的 worker {worker} 已满负荷：每个包耗费 {cycles:,.0f} 周期（{steps}），因此在 "
    "{ghz:.2f} GHz 下可转发 {most:.4g} Mpps；给予它的负载为 {mpps:.4g} Mpps，处理这些包占用了它 {busy:.0%} 的时间",
    "explain.overrun": "{frames:,} 个包在停顿之外丢失，当时有 worker 已满负荷",
    "explain.no_timeline": "{frames:,} 个包的丢失时刻未知，因此无法指出原因",
    "explain.silent": "{frames:,} 个包丢失时发生器的 worker 均在轮询；被测设备不提供自身信息，因此无法指出原因",
    "explain.silent.steady": "{frames:,} 个包均匀丢失，遍及 {share:.0%} 的时间，其间发生器的 worker "
    "均在轮询；被测设备不提供自身信息，因此无法指出原因",
    "explain.unexplained": "{frames:,} 个包的丢失不在任何已知的停顿之内，也没有 worker 满负荷：证据不足，无法指出原因",
    "explain.unexplained.steady": "{frames:,} 个包均匀丢失，遍及 {share:.0%} "
    "的时间，不在任何已知的停顿之内，也没有 worker 满负荷：证据不足，无法指出原因",
    "explain.unexplained.full": "{frames:,} 个包的丢失不在任何已知的停顿之内，也超出 worker "
    "满负荷所能解释的数量：证据不足，无法指出原因",
    "explain.counters": COUNTERS,
    "explain.counters.mhz": COUNTERS + "，之前 {before:,.0f} MHz，之后 {mhz:,.0f} MHz",
    "explain.counters.linux": "其间 Linux 向 dl3d 发送了 {messages:,.0f} 条消息（路由、邻居、链路）",
    "explain.missing": "此处未知：{sentence}",
    "explain.headroom.none_lost": "在 {mpps:.4g} Mpps 下，{sent:,} 个包无一丢失",
    "explain.headroom.unknown": "在 {mpps:.4g} Mpps 下，{sent:,} 个包无一丢失；被测设备未说明距其极限还有多远",
    "explain.headroom.worker": "核 {core} 上 dl3d 的 worker {worker} 负荷为 {fill:.0%}：每批 {burst:.1f} "
    "个包时，每个包耗费 {cycles:,.0f} 周期（{steps}），主频 {ghz:.2f} GHz；约在 {limit:.4g} Mpps "
    "时满负荷，若更大的批次使包更便宜则更高",
    "explain.headroom.pause": "核 {core} 上 dl3d 的 worker {worker} 最长停顿 {us:,.0f} µs；从 {limit:.4g} Mpps "
    "起，深度为 {ring:,} 的环会在这样的停顿中溢出",
    "advice.isolate.device": "隔离核 {core}（isolcpus，或将 {who} 移走），或加深接收环",
    "advice.isolate.generator": "隔离核 {core}（isolcpus，或将 {who} 移走），该核属于发生器",
    "advice.interrupts.device": "将中断 {who} 移到其他核（/proc/irq、irqaffinity=），或加深接收环",
    "advice.interrupts.generator": "将中断 {who} 移到其他核（/proc/irq、irqaffinity=）",
    "advice.hypervisor": "为本机分配专用的核",
    "advice.full": "为端口增加队列和 worker，或去掉耗费最多的步骤",
    "advice.silent": "测量提供计数器的被测设备，或查看其自身的计数器",
    "advice.worker_next": "这是下一个极限，位于 {least:.4g} Mpps；步骤“{step}”耗费最多",
    "advice.pause_next": "这是下一个极限，位于 {least:.4g} Mpps；隔离核 {core} 或加深接收环",
    "advice.memory": "为 dl3d 提供更多缓冲区（其配置文件中的内存）",
    "advice.cable": "检查链路及其两端",
    "advice.streams": "发生器发送了被测设备不应转发的包；请修改其流",
    "advice.routes": "对流的目的地址执行 'dl3 route ADDRESS'，并添加缺少的路由",
    "advice.neighbour": "让下一跳应答 ARP 或 ND，或将其 MAC 写入配置文件",
    "advice.mac": "将流的 dst_mac 设为端口的 MAC，见 'dl3 show ports'",
    "advice.mtu": "发送更小的帧，或提高 MTU",
    "advice.ttl": "发送更大的 TTL",
    "advice.up": "启用端口并检查其链路",
    "advice.taps": "为端口在 Linux 中建立孪生接口（control: linux），由其处理此类包",
    "advice.unsupported": "'dl3 show unsupported' 会列出 worker 无法表达的内容",
    "advice.punt": "此类包经过 Linux，速度较慢；限速见 'dl3 show classes'",
}
